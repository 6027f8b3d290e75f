package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// deficit counts the members that the domains of a fleet lacked room for when they were counted, and the capacity that has come back
// since. While each domain lacks one, the gang cannot fit. Rules, bars and leases are left out of the count: they only make less fit.
//
// Numbers of nodes and resources are those of the World in which it was counted.
type deficit struct {
	// known says that each domain lacked a member when they were counted.
	known bool
	// at is the instant of the count, until the one by which units were taken to have ended.
	at, until int64
	// priority is that of the owner if units of lower priority were taken to be evicted.
	priority int32
	evicts   bool
	// demand is the least that a member takes of each resource.
	demand topology.Capacity
	// rest is, by resource, the most that a node has beside its members if it is this resource that it has too little of for one more;
	// -1 for a resource that no node has too little of first.
	rest topology.Capacity
	// domains are the domains of the nodes, -1 for none; nil for one domain.
	domains []int32
	// missing is by domain.
	missing []int64
	// returned is what has come back.
	returned map[share]int64
}

// share is one resource of a node.
type share struct{ node, resource int }

// forget makes the deficit unknown: any returned capacity may do.
func (d *deficit) forget() { d.known = false }

// count counts anew. gone are units that are taken to have ended.
func (d *deficit) count(m *Machine, w *World, ask Ask, gone []topology.Running) {
	d.known, d.at = false, w.Now
	needed, shapes := waiting(ask)
	d.demand = leastDemand(shapes)
	if !slices.ContainsFunc(d.demand, func(n int64) bool { return n > 0 }) || !d.place(m, w, ask.Gang.Required) {
		return
	}
	d.rest = append(d.rest[:0], d.demand...)
	for r := range d.rest {
		d.rest[r] = -1
	}
	clear(d.returned)
	sums := &m.scratch.sums
	sums.reset(w.Ledger.Len())
	for _, of := range gone {
		for _, h := range of.Holds {
			sums.add(need{h.Node, h.Demand}, None)
		}
	}
	for i := range d.missing {
		d.missing[i] = needed
	}
	for node, free := range w.Ledger.Free {
		if domain := d.domainOf(node); domain >= 0 && !barred(shapes, node) {
			d.missing[domain] -= d.room(free, sums.of[node])
		}
	}
	d.known = !slices.ContainsFunc(d.missing, func(n int64) bool { return n <= 0 })
}

// place finds the domains one of which has to hold the gang; false if there are none.
func (d *deficit) place(m *Machine, w *World, required string) bool {
	d.domains = nil
	domains := 1
	if required != "" {
		level, ok := w.Ledger.Tree.Level(required)
		if !ok {
			return false
		}
		d.domains, domains = m.domains.of(w.Ledger.Tree, level)
	}
	d.missing = slices.Grow(d.missing[:0], domains)[:domains]
	return true
}

func (d *deficit) domainOf(node int) int {
	switch {
	case d.domains == nil:
		return 0
	case node >= len(d.domains):
		return -1
	}
	return int(d.domains[node])
}

// room returns how many members fit, and notes what is left beside them of the resource of which there is too little for more.
func (d *deficit) room(free, more topology.Capacity) int64 {
	const many = 1 << 31
	room, short, rest := int64(many), 0, int64(0)
	for r, demand := range d.demand {
		if demand <= 0 {
			continue
		}
		there := max(0, at(free, r)+at(more, r))
		if n := there / demand; n < room {
			room, short, rest = n, r, there%demand
		}
	}
	d.rest[short] = max(d.rest[short], rest)
	return room
}

// gains bounds how many more members a node can take.
func (d *deficit) gains(node int) int64 {
	most := int64(0)
	for r, demand := range d.demand {
		if demand > 0 && d.rest[r] >= 0 {
			most = max(most, (d.rest[r]+d.returned[share{node, r}])/demand)
		}
	}
	return most
}

// add counts what a unit that has ended held, and reports whether the gang may fit now.
func (d *deficit) add(u *Unit) bool {
	if !d.known {
		return true
	}
	if d.counted(u) {
		return false
	}
	if d.returned == nil {
		d.returned = make(map[share]int64)
	}
	for _, h := range u.Holds {
		domain := d.domainOf(h.Node)
		if domain < 0 {
			continue
		}
		before := d.gains(h.Node)
		for r, n := range h.Demand {
			if n > 0 && at(d.demand, r) > 0 && d.rest[r] >= 0 {
				d.returned[share{h.Node, r}] += n
			}
		}
		if d.missing[domain] -= d.gains(h.Node) - before; d.missing[domain] <= 0 {
			d.known = false
		}
	}
	return !d.known
}

// counted reports whether a unit was taken to have ended, or has started on capacity that was free.
func (d *deficit) counted(u *Unit) bool {
	return u.End.firm() && d.at < u.End.At && u.End.At <= d.until ||
		d.evicts && u.Preemptible && !u.Leaving && u.Priority < d.priority
}

// waiting returns how many members of a gang have to start together, at least one, and the shapes of those that wait.
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

// of returns the domain of each node, -1 for none, and how many there are.
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
