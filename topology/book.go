package topology

import "slices"

// Book is a ledger that changes, and what decisions count on it: how many members of a kind each node and each domain holds,
// and what a gang costs in each domain. All of that is kept between two questions and brought up to date where the ledger
// changed, so that a question does not look at every node. The answers are those that the same ledger gives without a book,
// but for one thing: a Shortfall says who does not fit, and why only if the book explains.
//
// Kept are counts for gangs whose members are of one kind and have no rules but a required and a preferred level, a limit
// per node, and nodes that are barred. Others are answered all the same, by looking at every node. A book belongs to one goroutine.
type Book struct {
	ledger Ledger
	notes  *notes
}

// NewBook opens a book on a ledger, which is copied. What is wrong with the ledger is an error of whoever asks: a book is kept for
// none that has less than nothing on a node.
func NewBook(l Ledger) *Book {
	l.Free = slices.Clone(l.Free)
	b := &Book{notes: &notes{free: l.Free, censuses: make(map[string]*census)}}
	for node, free := range l.Free {
		l.Free[node] = slices.Clone(free)
		b.notes.short += lacks(free)
	}
	l.notes = b.notes
	b.ledger = l
	for _, total := range l.Total {
		if negative(total) >= 0 {
			b.ledger.notes = nil
		}
	}
	if len(l.Free) != l.Len() || l.Total != nil && len(l.Total) != l.Len() {
		b.ledger.notes = nil
	}
	return b
}

// Explain has shortfalls say why, as without a book: for each of them every node is looked at.
func (b *Book) Explain() { b.notes.explains = true }

// Ledger returns the ledger as it is now. It holds until the next change, as do ledgers that are made from it.
func (b *Book) Ledger() Ledger { return b.ledger }

// Take takes a demand from what is free on a node, Give gives it back. Who takes more than is there has made the book wrong:
// questions are errors until it is given back.
func (b *Book) Take(node int, demand Capacity) { b.add(node, demand, -1) }

// Give is the opposite of Take.
func (b *Book) Give(node int, demand Capacity) { b.add(node, demand, 1) }

func (b *Book) add(node int, demand Capacity, sign int64) {
	free := b.ledger.Free[node]
	before := lacks(free)
	for len(free) < len(demand) {
		free = append(free, 0)
	}
	for resource, amount := range demand {
		free[resource] += sign * amount
	}
	b.ledger.Free[node] = free
	b.notes.changed(node, lacks(free)-before)
}

// Put says what is free on a node, and returns what was.
func (b *Book) Put(node int, free Capacity) Capacity {
	before := b.ledger.Free[node]
	b.ledger.Free[node] = free
	b.notes.changed(node, lacks(free)-lacks(before))
	return before
}

// notes are what is kept beside a ledger.
type notes struct {
	free     []Capacity
	censuses map[string]*census
	// journal are the nodes that changed since from, which is the number of changes before.
	journal []int32
	from    int
	// short is how many nodes have less than nothing.
	short int
	// parent is what this differs from on some nodes, nil if it is a book's own.
	parent *notes
	others []int
	// spare is memory of a search that is over, spares are censuses of ledgers that were discarded.
	spare  foresight
	spares []*census
	// explains is set if shortfalls say why.
	explains bool
}

// lacks is 1 if there is less than nothing of some resource, else 0.
func lacks(c Capacity) int {
	if negative(c) >= 0 {
		return 1
	}
	return 0
}

// changed writes a change of a node down, and by how many more nodes lack something then. What censuses that are far behind
// missed is forgotten: they count anew.
func (n *notes) changed(node, lacking int) {
	n.short += lacking
	if len(n.journal) >= max(4*len(n.free), 1024) {
		half := len(n.journal) / 2
		n.from += half
		n.journal = append(n.journal[:0], n.journal[half:]...)
	}
	n.journal = append(n.journal, int32(node))
}

// noted returns the notes of a ledger that nobody has given other capacities, nil if there are none.
func (l Ledger) noted() *notes {
	if n := l.notes; n != nil && n.short == 0 && len(l.Free) > 0 && &l.Free[0] == &n.free[0] {
		return n
	}
	return nil
}

// differing returns notes for a ledger that differs from l on these nodes, nil if l has none.
func (l Ledger) differing(free []Capacity, nodes []int) *notes {
	n := l.noted()
	if n == nil || len(free) == 0 {
		return nil
	}
	return &notes{
		free: free, parent: n, others: nodes, censuses: make(map[string]*census, 1), explains: n.explains,
	}
}

// Differing returns the ledger with other capacities, none of them negative, that differ from its own on these nodes at most. What
// a book has counted is of use for questions about it, too.
func (l Ledger) Differing(free []Capacity, nodes []int) Ledger {
	l.notes, l.Free = l.differing(free, nodes), free
	return l
}

// Discard gives the memory of a ledger that Differing or Beside made back to its book. No question may be asked of it any more.
func (l Ledger) Discard() {
	n := l.notes
	if n == nil || n.parent == nil {
		return
	}
	root := n.root()
	for _, g := range n.censuses {
		root.spares = append(root.spares, g)
	}
	clear(n.censuses)
}

// root returns the notes of the book itself.
func (n *notes) root() *notes {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// oldCensus returns one that nobody needs, nil if there is none.
func (n *notes) oldCensus() *census {
	last := len(n.spares) - 1
	if last < 0 {
		return nil
	}
	g := n.spares[last]
	n.spares[last], n.spares = nil, n.spares[:last]
	return g
}

// mostCensuses is how much is kept at most: censuses, and with them entries for vertices.
const (
	mostCensuses = 256
	mostEntries  = 1 << 23
)

// census returns the counts for the question, nil if they cannot be kept.
func (n *notes) census(a *ask) *census {
	var buffer [keyRoom]byte
	g := n.find(a, appendCensusKey(buffer[:0], a))
	if g.broken {
		return nil
	}
	return g
}

func (n *notes) find(a *ask, key []byte) *census {
	g, ok := n.censuses[string(key)]
	switch {
	case ok && n.parent != nil:
	case ok:
		n.update(g)
	case n.parent != nil:
		g = n.parent.find(a, key).cloneInto(n.root().oldCensus(), n.free)
		for _, node := range n.others {
			g.count(node)
		}
		n.censuses[string(key)] = g
	default:
		if len(n.censuses) >= mostCensuses || len(n.censuses)*len(n.free) >= mostEntries {
			clear(n.censuses)
		}
		g = newCensus(a, n.free)
		g.read = n.from + len(n.journal)
		n.censuses[string(key)] = g
	}
	return g
}

// update reads what changed since the census was read last.
func (n *notes) update(g *census) {
	end := n.from + len(n.journal)
	if g.read < n.from || end-g.read > len(n.free) {
		g.countAll()
	} else {
		for _, node := range n.journal[g.read-n.from:] {
			g.count(int(node))
		}
	}
	g.read = end
}

// Fits reports whether Place would place the gang. It is an error where Place has one.
func Fits(l Ledger, g Gang) (bool, error) {
	r, err := check(l, g)
	if err != nil {
		return false, err
	}
	g.Members = g.Members[:g.least()]
	a := newAsk(l, g, r)
	if a.strays() != nil {
		return false, nil
	}
	return a.fits()
}
