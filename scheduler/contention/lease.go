package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Reason names the purpose of a lease.
type Reason string

// The reasons of leases.
const (
	// Head leases wait for the units in their place to end, so that the owner starts there.
	Head Reason = "head"
	// Preemption leases wait for victims to leave.
	Preemption Reason = "preemption"
	// Start leases hold the places of a start that was interrupted.
	Start Reason = "start"
	// Replacement leases hold the places of lost members of a gang that was whole.
	Replacement Reason = "replacement"
	// LateMember leases hold the places of members that arrive when the others run.
	LateMember Reason = "late-member"
	// Move leases hold the places to which a whole gang moves.
	Move Reason = "move"
)

// waits reports whether the owner waits for an instant, rather than for a policy to answer.
func (r Reason) waits() bool { return r == Head || r == Preemption }

// Lease is a place that later entities may use by basic rule 3 only. Drivers read it; only the machine changes it.
type Lease struct {
	Owner  ID
	Order  Order
	Reason Reason
	// Holds is the place: the demand of each leased member on its node, in the coordinates of the owner's ledger.
	Holds []topology.Held
	// Nodes are the nodes of the place, ascending, each once.
	Nodes []int
	// Within is the smallest domain that holds the place.
	Within topology.Domain
	// Instant is the time at which the place is expected to be free: the latest expected end (Unit.Expected) of the
	// units that have to leave it, at least the time of the evaluation; None if they never end.
	Instant int64
	// Firm says that the instant rests on known ends only.
	Firm bool
	// Expiry is the instant at which the lease ends whatever happens; None for leases that live as long as their owner
	// waits.
	Expiry int64
	// Open leases bind no entity.
	Open bool
	// Accelerators is the number that the owner requests.
	Accelerators int64
	// Budget is the idle of this and former closings.
	Budget Budget
	// Sweep is the sweep of an owner that does not wait for an instant: while its place is reserved, the owner counts
	// as a running trial.
	Sweep Sweep `json:"Sweep,omitzero"`
	// Risk is the sum of the chances, in thousandths, that units which passed outlast the instant.
	Risk int64
	// Promised is the instant that the lease named when it closed last. A closed lease moves to another place only if
	// that is free by then.
	Promised int64 `json:"Told"`
	// Preemptible says that the owner may be evicted for an entity of higher priority: places of its lost and late
	// members bind no such entity.
	Preemptible bool
	// Unearned is the instant until which a lease of lost members lasts although they have not used their places for as
	// long; 0 if it does not.
	Unearned int64
	// Since is the instant since which the lease binds others: when it was granted, or closed last.
	Since int64
	// Late says that a unit which passed has outlasted its known end.
	Late bool

	// version changes with the place and with the instant.
	version int
	// needs is the place by node, in the coordinates of the owner's ledger.
	needs []need
	// ask is the owner's question, in the coordinates of its ledger.
	ask Ask
	// discipline is that of the owner.
	discipline Discipline
	// preempts says that the owner may evict units of lower priority.
	preempts bool
	// evicted lists the remembered evictions that make the place free.
	evicted evicted
	// toCome is the idle in accelerator-seconds until the instant if no other entity may use the place.
	toCome int64
	// rate is the number of accelerators that idle at the cost of the budget, since the last Settle.
	rate int64
	// refused are the classes with an entity that would be at its best place but for this lease: its idle time is for
	// them.
	refused map[*class]struct{}
	// broken says that nodes of the place no longer exist, lost that it did not become free when it was chosen.
	broken, lost bool
	// bars are the classes with an entity that was refused, or found no victims, while this lease bound it: without the
	// lease, the entity may fit.
	bars map[*class]struct{}
	// dirty leases have to be evaluated again, searching ones also for an earlier place.
	dirty, searching bool
	// lacks is the owner's deficit for an earlier place beside earlier leases, or an open lease's for a place that
	// rests on firm ends.
	lacks deficit
	// spare counts the room at the instant for moving aside (rule 3).
	spare spare
	// overdue is the instant at which the first known end in the place has passed, None if there is none.
	overdue int64
	// drifts says that an instant which rests on guesses has to be brought up to date.
	drifts bool
	// drifted says that this was done in this round, punctual that the lease was not Late before.
	drifted, punctual bool
	// skipped says that the lease, which is open, is not placed anew in this round, since it could not close.
	skipped bool
	// allowed says that the end of a unit in this round allows an earlier place, and hopes that the lease, which is
	// closed, gains from such units if earlier leases leave their places.
	allowed, hopes bool
	// evaluated is the instant of the last evaluation.
	evaluated int64
	// recheck is the instant at which the lease gets dirty by itself, None for never.
	recheck int64
	// awaits are the parts of units that leave the place of a preemption lease. The owner is evaluated when the last of
	// them, or anything else, has ended. nil has it evaluated at each end.
	awaits map[part]struct{}
	// clears is the instant at which units that use the place by basic rule 3b have to be evicted, None for never.
	clears int64
}

// part names the pods of a unit on one node.
type part struct {
	unit ID
	node int
}

// await notes the units on the lease's nodes that leave.
func (l *Lease) await(snap *Snapshot, leaves func(*Unit) bool) {
	l.awaits = make(map[part]struct{})
	for _, node := range l.Nodes {
		for _, u := range snap.Running.On(node) {
			if leaves(u) {
				l.awaits[part{u.ID, node}] = struct{}{}
			}
		}
	}
}

// left notes that a unit has left nodes. It reports whether the lease awaited the unit on all of them, and awaits
// others.
func (l *Lease) left(u *Unit, nodes []int) bool {
	before := len(l.awaits)
	for _, node := range nodes {
		delete(l.awaits, part{u.ID, node})
	}
	return len(l.awaits) > 0 && len(l.awaits) == before-len(nodes)
}

// settle gives the lease a place.
func (l *Lease) settle(holds []topology.Held) {
	if len(l.needs) > 0 && len(holds) > 0 && len(holds) == len(l.Holds) && &holds[0] == &l.Holds[0] {
		return // the one that it has
	}
	l.Holds, l.Nodes, l.needs, l.awaits = holds, nodesOf(holds), needsOf(holds), nil
	l.version++
}

// touches reports whether one of the nodes is in the place.
func (l *Lease) touches(nodes []int) bool {
	return slices.ContainsFunc(nodes, l.holdsNode)
}

func (l *Lease) holdsNode(node int) bool {
	_, ok := slices.BinarySearch(l.Nodes, node)
	return ok
}

// without subtracts the demand of the place on a node from a capacity, which it may change.
func (l *Lease) without(c topology.Capacity, node int) topology.Capacity {
	if at, ok := l.needOn(node); ok {
		c = less(c, l.needs[at].demand)
	}
	return c
}

// needOn returns the index of the place's demand on a node; false if there is none.
func (l *Lease) needOn(node int) (int, bool) {
	return slices.BinarySearchFunc(l.needs, node, func(n need, node int) int { return n.node - node })
}

// overrun notes that a unit which passed the lease has outlasted its known end: no other passes because of its end.
// Else each late unit would move the instant, and so let others pass that may be late, for ever.
func (l *Lease) overrun(u *Unit, now int64) {
	l.Late = l.Late || u.End.firm() && u.End.At < now && u.Started >= l.Since
}

// demandOn returns the capacity that the holds take on each node.
func demandOn(holds []topology.Held) map[int]topology.Capacity {
	out := make(map[int]topology.Capacity, len(holds))
	for _, h := range holds {
		out[h.Node] = sum(out[h.Node], h.Demand)
	}
	return out
}

// sum returns a + b. It may change a, which has no other reader.
func sum(a, b topology.Capacity) topology.Capacity {
	for len(a) < len(b) {
		a = append(a, 0)
	}
	for i, n := range b {
		a[i] += n
	}
	return a
}

// holdsOf returns the capacity that the members still to start take at a placement.
func holdsOf(gang topology.Gang, p topology.Placement) []topology.Held {
	holds := make([]topology.Held, 0, len(p.Nodes))
	for rank, node := range p.Nodes {
		if m := gang.Members[rank]; !m.Placed {
			holds = append(holds, topology.Held{Node: node, Demand: gang.Shapes[m.Shape].Demand})
		}
	}
	return holds
}

// Asks returns the question of the owner, in the coordinates of its last evaluation.
func (l *Lease) Asks() Ask { return l.ask }
