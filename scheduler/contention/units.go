package contention

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Units is the set of running units, with an index by node and one by end. The zero value is empty.
type Units struct {
	all map[ID]*Unit
	// timed are the units with a known end, by (end, ID), ends the same for package topology.
	timed []*Unit
	ends  []topology.Running
	// guessed are the units without one, the earliest start first: a unit that starts is appended. Their expected ends
	// descend.
	guessed []*Unit
	// preemptible are the units that may be evicted, by (priority, ID).
	preemptible []*Unit
	// parts are the units of elastic gangs beside those of their fewest members, by gang.
	parts map[ID][]*Unit
	// byNode are the units on each node, by its number, as far as there was one.
	byNode [][]*Unit
	// changes counts Add and Remove, services those of units that never end.
	changes, services int
	// sweeps sums the units of each sweep.
	sweeps map[string]*trials
	// eased counts the changes after which a unit that runs may end earlier than it had to before.
	eased int
	// list is the result of Expected at the instant and after the number of changes that listed says.
	list   []Expectation
	listed listing
}

type listing struct {
	now, atLeast int64
	changes      int
}

// Expectation is a unit and the instant at which it is expected to end.
type Expectation struct {
	Unit *Unit
	At   int64
	Firm bool
}

// Add adds a unit or, if there is one of its ID, replaces it. The set retains the pointer; the caller must not change
// the unit but by another Add.
func (u *Units) Add(unit *Unit) {
	if u.all == nil {
		u.all = make(map[ID]*Unit)
	}
	if old := u.Remove(unit.ID); old != nil && eases(old, unit) {
		u.eased++
	}
	u.changes++
	u.all[unit.ID] = unit
	if unit.Of != "" {
		if u.parts == nil {
			u.parts = make(map[ID][]*Unit)
		}
		at, _ := slices.BinarySearchFunc(u.parts[unit.Of], unit, byPriority)
		u.parts[unit.Of] = slices.Insert(u.parts[unit.Of], at, unit)
	}
	u.countTrial(unit, 1)
	if unit.End.Certainty == Never {
		u.services++
	}
	if list, compare := u.sorted(unit); list != nil {
		at, _ := slices.BinarySearchFunc(*list, unit, compare)
		*list = slices.Insert(*list, at, unit)
		if list == &u.timed {
			end := topology.Running{Name: string(unit.ID), Holds: unit.Holds, End: unit.End.At}
			u.ends = slices.Insert(u.ends, at, end)
		}
	}
	if unit.Preemptible {
		at, _ := slices.BinarySearchFunc(u.preemptible, unit, byPriority)
		u.preemptible = slices.Insert(u.preemptible, at, unit)
	}
	nodes := nodesOf(unit.Holds)
	if len(nodes) > 0 {
		u.reach(nodes[len(nodes)-1])
	}
	for _, node := range nodes {
		u.byNode[node] = append(u.byNode[node], unit)
	}
}

// reach makes room for a node's units.
func (u *Units) reach(node int) {
	if more := node + 1 - len(u.byNode); more > 0 {
		u.byNode = append(u.byNode, make([][]*Unit, more)...)
	}
}

// Remove removes a unit and returns it; nil if there is none of that ID.
func (u *Units) Remove(id ID) *Unit {
	unit := u.all[id]
	if unit == nil {
		return nil
	}
	u.changes++
	delete(u.all, id)
	if unit.Of != "" {
		u.parts[unit.Of] = slices.DeleteFunc(u.parts[unit.Of], func(other *Unit) bool { return other == unit })
		if len(u.parts[unit.Of]) == 0 {
			delete(u.parts, unit.Of)
		}
	}
	u.countTrial(unit, -1)
	if unit.End.Certainty == Never {
		u.services++
	}
	if list, compare := u.sorted(unit); list != nil {
		at, _ := slices.BinarySearchFunc(*list, unit, compare)
		*list = removed(*list, at)
		if list == &u.timed {
			u.ends = removed(u.ends, at)
		}
	}
	if unit.Preemptible {
		at, _ := slices.BinarySearchFunc(u.preemptible, unit, byPriority)
		u.preemptible = slices.Delete(u.preemptible, at, at+1)
	}
	for _, node := range nodesOf(unit.Holds) {
		u.byNode[node] = slices.DeleteFunc(u.byNode[node], func(other *Unit) bool { return other == unit })
	}
	return unit
}

// eases reports whether a unit may be taken to end earlier than before.
func eases(before, now *Unit) bool {
	return now.End.firm() && (!before.End.firm() || now.End.At < before.End.At) ||
		now.Preemptible && (!before.Preemptible || now.Priority < before.Priority)
}

// removed removes an entry from a list.
func removed[T any](list []T, at int) []T {
	if at == 0 {
		var none T
		list[0] = none
		return list[1:] // as most often: the others need not move
	}
	return slices.Delete(list, at, at+1)
}

// firm returns the units with a known end after now, by end. The slice belongs to the set, and holds until the next
// change.
func (u *Units) firm(now int64) []topology.Running { return u.ends[u.overdue(now):] }

// mortal counts the units but services.
func (u *Units) mortal() int { return len(u.timed) + len(u.guessed) }

// overdue counts the units whose known end has passed.
func (u *Units) overdue(now int64) int {
	n, _ := slices.BinarySearchFunc(u.timed, now, func(a *Unit, now int64) int {
		if a.End.At <= now {
			return -1
		}
		return 1
	})
	return n
}

// sorted returns the list that the unit belongs to and its order; nil for a service.
func (u *Units) sorted(unit *Unit) (list *[]*Unit, compare func(a, b *Unit) int) {
	switch unit.End.Certainty {
	case Never:
		return nil, nil
	case Unknown:
		return &u.guessed, func(a, b *Unit) int {
			return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
		}
	default:
		return &u.timed, func(a, b *Unit) int {
			return cmp.Or(cmp.Compare(a.End.At, b.End.At), cmp.Compare(a.ID, b.ID))
		}
	}
}

// Get returns the unit of that ID, nil if there is none.
func (u *Units) Get(id ID) *Unit { return u.all[id] }

// Parts returns the members beyond the fewest of an elastic gang, by ID. The slice belongs to the set.
func (u *Units) Parts(gang ID) []*Unit { return u.parts[gang] }

// All returns all units by ID.
func (u *Units) All() []*Unit {
	out := make([]*Unit, 0, len(u.all))
	for _, unit := range u.all {
		out = append(out, unit)
	}
	slices.SortFunc(out, func(a, b *Unit) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Len returns the number of units.
func (u *Units) Len() int { return len(u.all) }

// On returns the units on a node, in the order in which they were added. The slice belongs to the set.
func (u *Units) On(node int) []*Unit {
	if node < 0 || node >= len(u.byNode) {
		return nil
	}
	return u.byNode[node]
}

// Preemptible returns the units that an entity of the priority may evict: preemptible units of strictly lower priority,
// sorted by priority (lowest first), then by ID. Of equal losses in a domain the first leave, since the others would
// take their place. The slice belongs to the set.
func (u *Units) Preemptible(priority int32) []*Unit {
	end, _ := slices.BinarySearchFunc(u.preemptible, priority, func(a *Unit, p int32) int {
		if a.Priority < p {
			return -1
		}
		return 1
	})
	return u.preemptible[:end]
}

func byPriority(a, b *Unit) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
}

// Expected returns all units but services by the instant at which they are expected to end, then by ID. The slice
// belongs to the set, and holds until the next change.
func (u *Units) Expected(now, atLeast int64) []Expectation {
	key := listing{now, atLeast, u.changes}
	if u.list != nil && u.listed == key {
		return u.list
	}
	future := u.overdue(now)
	late := slices.Concat(u.timed[:future], u.guessed)
	slices.Reverse(late[future:])
	guesses := make([]Expectation, len(late))
	for i, unit := range late {
		guesses[i] = expectation(unit, now, atLeast)
	}
	slices.SortFunc(guesses, compareExpectations)
	list := make([]Expectation, 0, len(late)+len(u.timed)-future)
	for _, unit := range u.timed[future:] {
		known := expectation(unit, now, atLeast)
		for len(guesses) > 0 && compareExpectations(guesses[0], known) < 0 {
			list, guesses = append(list, guesses[0]), guesses[1:]
		}
		list = append(list, known)
	}
	u.list, u.listed = append(list, guesses...), key
	return u.list
}

func expectation(unit *Unit, now, atLeast int64) Expectation {
	at, firm := unit.Expected(now, atLeast)
	return Expectation{unit, at, firm}
}

func compareExpectations(a, b Expectation) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Unit.ID, b.Unit.ID))
}

// nodesOf returns the nodes of the holds, ascending, each once.
func nodesOf(holds []topology.Held) []int {
	nodes := make([]int, len(holds))
	for i, h := range holds {
		nodes[i] = h.Node
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
