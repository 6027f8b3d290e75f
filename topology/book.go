package topology

import "slices"

// Book is a ledger that changes, with counts for decisions: the number of members of a kind that each node and each
// domain holds, and the cost of a gang in each domain. The counts are retained between questions and updated where the
// ledger changed, so that a question does not scan every node. The answers equal those of the same ledger without a
// book, with one exception: a Shortfall names the gang that does not fit, and gives the reasons only if the book
// explains.
//
// Counts are retained for gangs whose members are of one kind and whose only rules are a required and a preferred
// level, a limit per node, and barred nodes. Questions about other gangs scan every node. A book belongs to one
// goroutine.
type Book struct {
	ledger Ledger
	notes  *notes
}

// NewBook opens a book on a copy of the ledger. Questions, not NewBook, return the errors of an invalid ledger: a
// ledger with a negative capacity on a node has no counts.
func NewBook(l Ledger) *Book {
	l.Free = slices.Clone(l.Free)
	b := &Book{notes: &notes{free: l.Free, tables: make(map[string]*subtreeTable)}}
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

// Explain has shortfalls give the reasons, as without a book: each of them scans every node.
func (b *Book) Explain() { b.notes.explains = true }

// Ledger returns the present ledger. It holds until the next change, as do ledgers that are made from it.
func (b *Book) Ledger() Ledger { return b.ledger }

// Take subtracts a demand from a node's free capacity; Give adds it back. After a Take of more than is free, questions
// return errors until the excess is given back.
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

// Put sets a node's free capacity, and returns the previous one.
func (b *Book) Put(node int, free Capacity) Capacity {
	before := b.ledger.Free[node]
	b.ledger.Free[node] = free
	b.notes.changed(node, lacks(free)-lacks(before))
	return before
}

// notes hold the counts beside a ledger.
type notes struct {
	free   []Capacity
	tables map[string]*subtreeTable
	// journal are the nodes that changed since from, which is the number of changes before.
	journal []int32
	from    int
	// short is the number of nodes with less than nothing.
	short int
	// parent is the notes that this differs from on some nodes, nil for a book's own.
	parent *notes
	others []int
	// spare is memory of a finished search, spares are subtree tables of ledgers that were discarded.
	spare  futureMemory
	spares []*subtreeTable
	// explains is set if shortfalls give the reasons.
	explains bool
}

// lacks returns 1 if the capacity of some resource is negative, else 0.
func lacks(c Capacity) int {
	if negative(c) >= 0 {
		return 1
	}
	return 0
}

// changed appends a node to the journal, and adds to the number of nodes with a negative capacity. Old entries are
// dropped: subtree tables that have not read them count anew.
func (n *notes) changed(node, lacking int) {
	n.short += lacking
	if len(n.journal) >= max(4*len(n.free), 1024) {
		half := len(n.journal) / 2
		n.from += half
		n.journal = append(n.journal[:0], n.journal[half:]...)
	}
	n.journal = append(n.journal, int32(node))
}

// noted returns the notes of a ledger whose capacities were not replaced, nil if there are none.
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
		free: free, parent: n, others: nodes, tables: make(map[string]*subtreeTable, 1), explains: n.explains,
	}
}

// Differing returns the ledger with other capacities, none of them negative, that differ from its own on these nodes at
// most. Questions about it can use the book's counts, too.
func (l Ledger) Differing(free []Capacity, nodes []int) Ledger {
	l.notes, l.Free = l.differing(free, nodes), free
	return l
}

// Discard gives the memory of a ledger that Differing or Beside made back to its book. It must not be used for
// questions any more.
func (l Ledger) Discard() {
	n := l.notes
	if n == nil || n.parent == nil {
		return
	}
	root := n.root()
	for _, g := range n.tables {
		g.classes = nil
		root.spares = append(root.spares, g)
	}
	clear(n.tables)
}

// root returns the notes of the book itself.
func (n *notes) root() *notes {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// unusedTable returns an unused one, nil if there is none.
func (n *notes) unusedTable() *subtreeTable {
	last := len(n.spares) - 1
	if last < 0 {
		return nil
	}
	t := n.spares[last]
	n.spares[last], n.spares = nil, n.spares[:last]
	return t
}

// The limits of retained memory: subtree tables, and their entries for vertices.
const (
	mostTables  = 256
	mostEntries = 1 << 23
)

// table returns the counts for the question, nil if they cannot be exact.
func (n *notes) table(a *ask) *subtreeTable {
	var buffer [keyRoom]byte
	t := n.find(a, appendTableKey(buffer[:0], a))
	if t.broken {
		return nil
	}
	return t
}

func (n *notes) find(a *ask, key []byte) *subtreeTable {
	t, ok := n.tables[string(key)]
	switch {
	case ok && n.parent != nil:
	case ok:
		n.update(t)
	case n.parent != nil:
		t = n.parent.find(a, key).cloneInto(n.root().unusedTable(), n.free)
		for _, node := range n.others {
			t.count(node)
		}
		n.tables[string(key)] = t
	default:
		if len(n.tables) >= mostTables || len(n.tables)*len(n.free) >= mostEntries {
			clear(n.tables)
		}
		t = newSubtreeTable(a, n.free)
		t.read = n.from + len(n.journal)
		n.tables[string(key)] = t
	}
	return t
}

// update reads the changes since the subtree table was last updated.
func (n *notes) update(t *subtreeTable) {
	end := n.from + len(n.journal)
	if t.read < n.from || end-t.read > len(n.free) {
		t.countAll()
	} else {
		for _, node := range n.journal[t.read-n.from:] {
			t.count(int(node))
		}
	}
	t.read = end
}
