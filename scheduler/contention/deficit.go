package contention

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// deficit counts the members that the domains of a fleet lacked room for when they were counted, and the capacity that
// has returned since. While each domain lacks one, the gang cannot fit. Rules, bars and leases are left out of the
// count, except for those that it is made beside: they only make less fit.
//
// Numbers of nodes and resources are those of the snapshot in which it was counted.
type deficit struct {
	// known says that each domain lacked a member when they were counted, and does still.
	known bool
	// futile is the number of counts in a row that found a domain that lacks none, pause the number to leave out before
	// the next one.
	futile, pause int
	// at is the instant of the count, until the one by which units were taken to have ended. counted is the instant at
	// which all nodes were counted, at or before at.
	at, until, counted int64
	// priority is that of the owner if units of lower priority were taken to be evicted.
	priority int32
	evicts   bool
	// bound lists the leases beside which the remaining capacity is counted, nil for none; versions are their versions.
	bound    []*Lease
	versions []int
	// owed are the earlier leases whose places do not count as room at any instant: their owners come first.
	owed []*Lease
	// demand is the least that a member takes of each resource.
	demand topology.Capacity
	// short is, by node, the resource that limits its members; none for a node that is barred or in no domain.
	short []uint8
	// left is, by node, the amount of that resource, negative where the node owes more.
	left []int64
	// more and need are scratch memory: a node's capacity beyond its free capacity, and its leased capacity.
	more, need topology.Capacity
	// domains are the domains of the nodes, -1 for none; nil for one domain.
	domains []int32
	// missing is by domain.
	missing []int64
}

// mostCounted bounds the counted nodes in the deficits of all classes, two for each class. A node takes nine bytes, so
// the bound is 151 MB. Deficits of leases are not in it.
const mostCounted = 1 << 24

// longestPause bounds the number of counts that are left out after futile ones.
const longestPause = 16

// none is no resource.
const none = math.MaxUint8

// forget makes the deficit unknown: any returned capacity may do.
func (d *deficit) forget() { d.known = false }

// count recounts the deficit. gone lists units that are assumed to have ended.
func (d *deficit) count(m *Machine, snap *Snapshot, ask Ask, gone []topology.Running) {
	d.known, d.at, d.counted = false, snap.Now, snap.Now
	if d.pause > 0 {
		d.pause--
		return
	}
	d.futile++
	d.pause = min(d.futile-1, longestPause)
	needed, shapes := waiting(ask)
	d.demand = leastDemand(shapes)
	nodes := snap.Ledger.Len()
	if !slices.ContainsFunc(d.demand, func(n int64) bool { return n > 0 }) || len(d.demand) >= none ||
		2*nodes*len(m.queue.classes) > mostCounted || !d.place(m, snap, ask.Gang.Required) {
		return
	}
	d.short, d.left = slices.Grow(d.short[:0], nodes)[:nodes], slices.Grow(d.left[:0], nodes)[:nodes]
	for i := range d.missing {
		d.missing[i] = needed
	}
	beyond := m.scratch.sums.beyond(nodes, gone, d.owed)
	unbarred := slices.ContainsFunc(shapes, func(s topology.Shape) bool { return len(s.Barred) == 0 })
	for node, free := range snap.Ledger.Free {
		d.short[node] = none
		if domain := d.domainOf(node); domain >= 0 && (unbarred || !barred(shapes, node)) {
			d.missing[domain] -= d.room(node, free, beyond[node])
		}
	}
	if d.known = !slices.ContainsFunc(d.missing, func(n int64) bool { return n <= 0 }); d.known {
		d.futile, d.pause = 0, 0
	}
}

// place finds the domains of the level that the gang requires; false if the fleet has no such level.
func (d *deficit) place(m *Machine, snap *Snapshot, required string) bool {
	d.domains = nil
	domains := 1
	if required != "" {
		level, ok := snap.Ledger.Tree.Level(required)
		if !ok {
			return false
		}
		d.domains, domains = m.domains.of(snap.Ledger.Tree, level)
	}
	d.missing = slices.Grow(d.missing[:0], domains)[:domains]
	return true
}

func (d *deficit) domainOf(node int) int { return domainIn(d.domains, node) }

// room returns the number of members that fit on a node into its free capacity and more.
func (d *deficit) room(node int, free, more topology.Capacity) int64 {
	room := int64(math.MaxInt32)
	for r, demand := range d.demand {
		if demand <= 0 {
			continue
		}
		there := at(free, r) + at(more, r)
		if there < demand {
			d.short[node], d.left[node] = uint8(r), there
			return 0
		}
		if n := there / demand; n < room {
			room, d.short[node], d.left[node] = n, uint8(r), there
		}
	}
	return room
}

// add adds the capacity of a unit that has ended, and reports whether the gang may fit now. A node takes no more
// members than it has room for in the resource that was short.
func (d *deficit) add(u *Unit) bool {
	if !d.known {
		return true
	}
	if d.gone(u) {
		return false
	}
	for _, h := range u.Holds {
		if h.Node >= len(d.short) || d.short[h.Node] == none {
			continue
		}
		short := int(d.short[h.Node])
		before := d.takes(h.Node)
		d.left[h.Node] += at(h.Demand, short)
		d.gain(h.Node, d.takes(h.Node)-before)
	}
	return !d.known
}

// recount counts a node on which something has changed.
func (d *deficit) recount(snap *Snapshot, node int) {
	if !d.known || node >= len(d.short) || d.short[node] == none {
		return
	}
	before := d.takes(node)
	if _, away := snap.away(node); away { // in some ledgers it still has something free
		d.gain(node, d.room(node, nil, nil)-before)
		return
	}
	if len(d.bound) > 0 {
		d.more = d.leftOn(snap, node)
		d.gain(node, d.room(node, d.more, nil)-before)
		return
	}
	more := d.more[:0]
	for _, u := range snap.Running.On(node) {
		if d.gone(u) {
			more = holding(more, u.Holds, node)
		}
	}
	for _, l := range d.owed {
		more = l.without(more, node)
	}
	d.more = more
	d.gain(node, d.room(node, snap.Ledger.Free[node], more)-before)
}

// takes returns the number of members that a node has room for by the last count of it.
func (d *deficit) takes(node int) int64 { return max(0, d.left[node]) / d.demand[d.short[node]] }

// leftOn returns the capacity left on a node beside the leases.
func (d *deficit) leftOn(snap *Snapshot, node int) topology.Capacity {
	instant := int64(None)
	need := d.need[:0]
	for _, l := range d.bound {
		if at, ok := l.needOn(node); ok {
			need, instant = sum(need, l.needs[at].demand), min(instant, l.Instant)
		}
	}
	d.need = need
	left := append(d.more[:0], snap.Ledger.Free[node]...)
	if instant < None || len(need) > 0 {
		leave(left, snap, node, need, instant)
	}
	return left
}

// binds notes the leases beside which is counted.
func (d *deficit) binds(leases []*Lease) {
	d.bound, d.versions = append(d.bound[:0], leases...), d.versions[:0]
	for _, l := range leases {
		d.versions = append(d.versions, l.version)
	}
}

// holds reports whether a count beside leases is of use beside these: all of the former are among them, and as they
// were.
func (d *deficit) holds(leases []*Lease) bool {
	for i, l := range d.bound {
		if l.version != d.versions[i] {
			d.forget() // it is recounted, and needs no update until then
		}
		if !d.known || !slices.Contains(leases, l) {
			return false
		}
	}
	return d.known
}

// paidBack forgets a count that is made beside the place of a lease, which has left it, and reports whether it was
// known.
func (d *deficit) paidBack(l *Lease) bool {
	if !d.known || !slices.Contains(d.owed, l) {
		return false
	}
	d.forget()
	return true
}

// gain notes that a node takes more members than before, or fewer.
func (d *deficit) gain(node int, members int64) {
	domain := d.domainOf(node)
	if d.missing[domain] -= members; d.missing[domain] <= 0 {
		d.known = false
	}
}

// gone reports whether a unit was taken to have ended, or has started on capacity that was free.
func (d *deficit) gone(u *Unit) bool {
	return u.End.firm() && d.at < u.End.At && u.End.At <= d.until ||
		d.evicts && u.Preemptible && !u.Leaving && u.Priority < d.priority
}

// waiting returns the number of members of a gang that have to start together, at least one, and the shapes of the
// waiting members.
func waiting(ask Ask) (needed int64, shapes []topology.Shape) {
	used := make([]bool, len(ask.Gang.Shapes))
	n := 0
	for _, m := range ask.Gang.Members {
		if !m.Placed && m.Shape >= 0 && m.Shape < len(used) {
			n++
			used[m.Shape] = true
		}
	}
	for i, shape := range ask.Gang.Shapes {
		if used[i] {
			shapes = append(shapes, shape)
		}
	}
	return int64(max(1, min(ask.Needed, n))), shapes
}

// leastDemand returns the least that any of the shapes takes of each resource.
func leastDemand(shapes []topology.Shape) topology.Capacity {
	var least topology.Capacity
	for i, shape := range shapes {
		if i == 0 {
			least = slices.Clone(shape.Demand)
			continue
		}
		for r := range least {
			least[r] = min(least[r], at(shape.Demand, r))
		}
	}
	return least
}

// barred reports whether a rule bars all shapes from a node.
func barred(shapes []topology.Shape, node int) bool {
	return !slices.ContainsFunc(shapes, func(s topology.Shape) bool {
		return node >= len(s.Barred) || s.Barred[node] == ""
	})
}

// domains are the domains of a tree's nodes by level, numbered in the order of their first node.
type domains struct {
	tree   *topology.Tree
	levels map[int]numbered
}

type numbered struct {
	of    []int32
	count int
}

// of returns the domain of each node, -1 for none, and the number of domains.
func (d *domains) of(tree *topology.Tree, level int) ([]int32, int) {
	if d.tree != tree {
		d.tree, d.levels = tree, make(map[int]numbered)
	}
	found, ok := d.levels[level]
	if !ok {
		found = numberDomains(tree, level)
		d.levels[level] = found
	}
	return found.of, found.count
}

func numberDomains(tree *topology.Tree, level int) numbered {
	out := numbered{of: make([]int32, tree.Len())}
	known := make(map[string]int32)
	for node := range out.of {
		domain, ok := tree.Domain(node, level)
		if !ok {
			out.of[node] = -1
			continue
		}
		name := domain.String()
		if _, there := known[name]; !there {
			known[name] = int32(len(known))
		}
		out.of[node] = known[name]
	}
	out.count = len(known)
	return out
}
