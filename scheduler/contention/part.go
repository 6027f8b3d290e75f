package contention

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// An elastic gang runs as several units: one of its fewest members, and one for each member beyond these, with the gang
// as its Of. The gang continues without any of the latter, and none of them continues without the fewest.

// Member is a member of an elastic gang that runs.
type Member struct {
	// ID names the unit of the member if the gang can do without it.
	ID    ID
	Holds []topology.Held
	// Accelerators counts those that it holds.
	Accelerators int64
	// Leaves is the instant at which it leaves alone, None if it stays.
	Leaves int64
}

// Divide returns the units of an elastic gang: its own with the fewest members first, then one of each other. members
// are in rank order. whole is the gang as one unit, with the accelerators of all; Holds is replaced.
func Divide(whole Unit, least int, members []Member) []*Unit {
	leaves := make([]bool, len(members))
	for i, m := range members {
		leaves[i] = m.Leaves != None
	}
	spare := Spare(least, leaves)
	fewest := whole
	fewest.Holds = nil
	out := []*Unit{&fewest}
	for i, m := range members {
		if spare == nil || !spare[i] {
			fewest.Holds = append(fewest.Holds, m.Holds...)
			continue
		}
		part := whole
		part.ID, part.Of, part.Holds = m.ID, whole.ID, m.Holds
		part.Stops, part.Accelerators = whole.Accelerators, m.Accelerators
		if leaves[i] {
			part.Leaving, part.End = true, End{At: m.Leaves, Certainty: Certain}
		}
		fewest.Stops = whole.Accelerators
		fewest.Accelerators -= m.Accelerators
		out = append(out, &part)
	}
	return out
}

// Spare reports which members an elastic gang can do without: all but the first so many by rank that stay. members are
// given in rank order, by whether they leave. It is nil if the gang needs all, or if fewer stay: then it is one unit.
func Spare(least int, leaves []bool) []bool {
	stay := 0
	for _, l := range leaves {
		if !l {
			stay++
		}
	}
	if least <= 0 || stay < least || len(leaves) == least {
		return nil
	}
	out := make([]bool, len(leaves))
	for i, l := range leaves {
		if out[i] = l || least == 0; !out[i] {
			least--
		}
	}
	return out
}

// option is a set of units that leave together, in a search for victims.
type option struct {
	units []*Unit
	holds []topology.Held
	cost  int64
}

// chooseParts finds the victims that lose least, as choose does: elastic gangs give up their surplus if that makes room
// and loses no more than whole victims do.
func chooseParts(snap *Snapshot, ask Ask, units []*Unit, restart int64) (choice, bool) {
	wholes, elastic := options(snap, units, restart, wholeGang)
	whole, ok := choose(snap, ask, wholes)
	if !elastic {
		return whole, ok
	}
	parts, _ := options(snap, units, restart, partsOfGang)
	part, fits := choose(snap, ask, parts)
	if !fits || len(part.victims) == 0 {
		return whole, ok
	}
	if ok && lost(part.victims, snap.Now, restart) > lost(whole.victims, snap.Now, restart) {
		return whole, ok
	}
	part.victims = needed(part)
	return part, true
}

// Which units of an elastic gang are one option.
const (
	wholeGang = iota
	partsOfGang
)

// options returns the sets of units that may leave, and whether an elastic gang is among them. A restart costs so many
// seconds.
func options(snap *Snapshot, units []*Unit, restart int64, of int) (out []option, elastic bool) {
	out = make([]option, 0, len(units))
	at := make(map[ID]int) // of the parts of a gang
	for i, u := range units {
		parts := snap.Running.Parts(u.gang())
		elastic = elastic || len(parts) > 0
		switch {
		case len(parts) == 0, of == partsOfGang && u.Of != "" && u.Leaving:
			out = append(out, option{units[i : i+1 : i+1], u.Holds, u.Lost(snap.Now) + u.restarts(restart)})
		case of == wholeGang && u.Of == "":
			out = append(out, newOption(snap, append([]*Unit{u}, parts...), restart))
		case of == partsOfGang && u.Of != "":
			j, known := at[u.Of]
			if !known {
				j, at[u.Of] = len(out), len(out)
				out = append(out, option{})
			}
			out[j].units = append(out[j].units, u)
		default:
		}
	}
	for _, j := range at {
		out[j] = newOption(snap, out[j].units, restart)
	}
	return out, elastic
}

func newOption(snap *Snapshot, units []*Unit, restart int64) option {
	o := option{units: units, cost: lost(units, snap.Now, restart)}
	for _, u := range units {
		o.holds = append(o.holds, u.Holds...)
	}
	return o
}

// lost returns the accelerator-seconds that are lost if units leave, a restart of so many seconds included. The loss of
// an elastic gang counts once.
func lost(units []*Unit, now, restart int64) int64 {
	of := make(map[ID]int64, len(units))
	sum := int64(0)
	for _, u := range units {
		id, loses := u.gang(), u.Lost(now)+u.restarts(restart)
		sum += max(loses-of[id], 0)
		of[id] = max(of[id], loses)
	}
	return sum
}

// needed returns the victims without those parts of elastic gangs on whose nodes the entity has no member: as few as
// possible leave.
func needed(c choice) []*Unit {
	nodes := slices.Clone(c.placement.Nodes)
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Clone(c.victims), func(u *Unit) bool {
		return u.Of != "" && !slices.ContainsFunc(u.Holds, func(h topology.Held) bool {
			_, ok := slices.BinarySearch(nodes, h.Node)
			return ok
		})
	})
}

// withParts adds the other members of elastic gangs whose fewest members leave.
func (t *turn) withParts(victims []ID) []ID {
	out := slices.Clone(victims)
	for _, id := range victims {
		for _, part := range t.snap.Running.Parts(id) {
			if !part.Leaving && !slices.Contains(out, part.ID) {
				out = append(out, part.ID)
			}
		}
	}
	return out
}

// byGang orders units by priority, the members that an elastic gang can do without first, then by ID.
func byGang(a, b *Unit) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority), compareBools(b.Of != "", a.Of != ""), cmp.Compare(a.ID, b.ID),
	)
}

// waitsForAll reports whether an elastic gang may wait until there is room for all its members. One that insists starts
// with those that it can have now, and evicts for the fewest.
func (m *Machine) waitsForAll(e *Entity) bool { return e.Elastic && !m.policy.insists(e) }

// startWithFewer starts an elastic gang that has no room for all its members with fewer, if that pays and no lease is
// in the way of the longer run. It reports whether it did, which ends the turn.
func (t *turn) startWithFewer() bool {
	e := &t.s.Entity
	if !t.waitsForAll(e) {
		return false
	}
	few := t.snap.placer().Place(t.snap.Ledger, e.Ask)
	if few.Refusal != nil || !t.smallPays(few) {
		return false
	}
	whole, binding := *e, t.binding
	e.RunTime = e.RunTime * int64(all(e.Ask)) / int64(len(holdsOf(few.Gang, few.Placement)))
	t.binding = t.Machine.binding(e, t.snap.Now)
	started := len(touching(t.binding, few.Placement.Nodes)) == 0
	if started {
		t.start(few)
	}
	*e, t.binding = whole, binding
	return started
}

// smallPays reports whether an elastic gang ends sooner if it starts with the members that have a place now than if it
// waited for a place for all: its work takes as many times longer as it has fewer members. Of unknown work it is
// assumed that it takes as long as the wait. Members that would join later are not counted on.
func (t *turn) smallPays(few Answer) bool {
	e := &t.s.Entity
	next, ok := t.reserve(t.snap, e, t.ask(t.snap, e))
	if !ok {
		return true
	}
	wait := next.Instant - t.snap.Now
	work := cmp.Or(e.Work, wait)
	return work*int64(all(e.Ask)) <= (wait+work)*int64(len(holdsOf(few.Gang, few.Placement)))
}

// all counts the members of a question that wait.
func all(ask Ask) int {
	n := 0
	for _, m := range ask.Gang.Members {
		if !m.Placed && !m.Late {
			n++
		}
	}
	return n
}

// waitIfGrowthCosts ends the turn of members that would join an elastic gang if that loses more than it wins, and
// reports whether it did: all of the gang would start again from its last checkpoint. They win the accelerators that
// join, for as long as the gang still runs: as long as it has run, if that is not known.
func (t *turn) waitIfGrowthCosts(own Answer) bool {
	e := &t.s.Entity
	gang := t.snap.Running.Get(e.ID)
	if !e.Order.Grows || gang == nil {
		return false
	}
	remaining := e.RunTime
	if remaining <= 0 {
		at, _ := gang.Expected(t.snap.Now, t.policy.MinRemaining)
		remaining = at - t.snap.Now
	}
	var joins int64
	for _, h := range holdsOf(own.Gang, own.Placement) {
		joins += t.snap.accelerators(h.Demand)
	}
	balance := Balance{Won: joins * remaining, Lost: gang.Lost(t.snap.Now) + gang.restarts(t.policy.Terms.Restart)}
	if balance.Pays() {
		return false
	}
	t.s.class.full = true
	t.s.class.lacks.forget()
	t.queue.putOff(t.s.class, balance, t.snap.Now+t.policy.MinRemaining)
	t.wait(Wait{Cause: Costly, At: None})
	return true
}
