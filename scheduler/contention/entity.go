package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Entity waits for a place: a gang, a replacement for lost members, the surplus of an elastic gang, or a single pod.
// Only ready entities are in the queue: complete, not gated, not suspended.
type Entity struct {
	ID    ID
	Order Order
	Ask   Ask
	// Question is equal for entities that ask the same of the same nodes. "" is replaced by Question(Ask.Gang).
	Question string
	// RunTime is the longest run time in seconds if that is known, else 0.
	RunTime int64
	// Overrun is the chance, in thousandths, that it runs longer than RunTime. The drivers leave it 0: a predicted run
	// time counts as a declared one.
	Overrun int64
	// Preemptible says that it may be evicted for an entity of higher priority once it runs.
	Preemptible bool
	// Grace is the time in seconds that it needs to leave when it is evicted.
	Grace int64
	// NeverPreempts says that it evicts no other.
	NeverPreempts bool
	// Accelerators is the number that it requests.
	Accelerators int64
	// Elastic says that the gang may start with fewer members than all, with Ask.Needed at least, and gets the others
	// later. It waits for all if it ends sooner so. Members that join others are not Elastic.
	Elastic bool
	// Work is the run time of an elastic gang with all members, in seconds; 0 if it is not known.
	Work int64
	// Discipline is that of its queue; nil is the policy's.
	Discipline *Discipline
	// Sweep is the set of trials to which it belongs.
	Sweep Sweep

	// apart says that the machine does not keep the gang together any more.
	apart bool
}

// Snapshot is the input of one evaluation. All coordinates are those of its ledger.
type Snapshot struct {
	// Now is in seconds, not before that of the snapshot before.
	Now int64
	// Ledger is free capacity; nothing is taken off for leases.
	Ledger  topology.Ledger
	Running *Units
	// Budgets are the evictions that each disruption budget still allows.
	Budgets []int
	// Accelerators are the entries of a Capacity that count accelerators.
	Accelerators []int
	// Fleet is the number of accelerators of all nodes.
	Fleet int64
	// Placer chooses nodes; nil is package topology.
	Placer Placer
	// Coordinates is a comparable value that names the numbering of nodes and the order of resources in the ledger. A
	// driver with one numbering leaves it nil.
	Coordinates any
	// Held returns the place of a lease in the ledger's coordinates; it is called for all leases when the coordinates
	// are others than in the snapshot before. Members on nodes that the ledger does not have are missing.
	Held func(*Lease) []topology.Held
	// Owner returns the question of a lease's owner in the ledger's coordinates; false if the ledger cannot count the
	// demands of the owner and of the evaluated entity together. A nil Owner returns the owner's question unchanged.
	Owner func(*Lease) (Ask, bool)
	// Away returns since when a node cannot be used, false if it can be or is not expected back. nil is never.
	Away func(node int) (since int64, away bool)
}

// Placer chooses nodes.
type Placer interface {
	// Place returns the placement of the entity, or the reason why it does not fit.
	Place(l topology.Ledger, ask Ask) Answer
	// Reserve returns the earliest instant and place if the running units end as expected, false if there is none.
	// running is sorted by end.
	Reserve(l topology.Ledger, ask Ask, running []topology.Running) (topology.Reservation, bool)
}

// core is the Placer that asks package topology.
type core struct{}

func (core) Place(l topology.Ledger, ask Ask) Answer { return Place(l, ask) }

func (core) Reserve(l topology.Ledger, ask Ask, running []topology.Running) (topology.Reservation, bool) {
	r, fits, err := topology.Earliest(l, ask.Fewest(), running)
	return r, fits && err == nil
}

func (snap *Snapshot) placer() Placer {
	if snap.Placer == nil {
		return core{}
	}
	return snap.Placer
}

func (snap *Snapshot) owner(l *Lease) (Ask, bool) {
	if snap.Owner == nil {
		return l.ask, true
	}
	return snap.Owner(l)
}

func (snap *Snapshot) away(node int) (int64, bool) {
	if snap.Away == nil {
		return 0, false
	}
	return snap.Away(node)
}

// accelerators counts them in a capacity.
func (snap *Snapshot) accelerators(c topology.Capacity) int64 {
	var n int64
	for _, i := range snap.Accelerators {
		n += at(c, i)
	}
	return n
}

// class returns the properties that, beside the order and the run time, determine the outcome of an entity's
// evaluation.
func (e *Entity) class() classKey {
	question := e.Question
	if question == "" {
		question = Question(e.Ask.Gang)
	}
	key := classKey{
		question:    question,
		needed:      e.Ask.Needed,
		priority:    e.Order.Priority,
		replacement: e.Order.Replacement,
		grows:       e.Order.Grows,
		elastic:     e.Elastic,
		preemptible: e.Preemptible,
		never:       e.NeverPreempts,
		apart:       e.apart || e.RunTime <= 0 && e.wishesNothing(),
		together:    ofPolicy,
	}
	if e.Preemptible {
		key.grace = e.Grace
	}
	if e.Discipline != nil {
		key.together = e.Discipline.Together
	}
	return key
}

// without bars the nodes of leases for an ask, and those that are away: only a place that is leased already retains
// such a node.
func without(snap *Snapshot, ask Ask, leases []*Lease) Ask {
	var rules []string
	bar := func(node int, rule string) {
		if rules == nil {
			rules = make([]string, snap.Ledger.Len())
		}
		rules[node] = rule
	}
	if snap.Away != nil {
		for node := range snap.Ledger.Len() {
			if _, away := snap.Away(node); away {
				bar(node, "away")
			}
		}
	}
	for _, l := range leases {
		for _, h := range l.Holds {
			bar(h.Node, "leased to "+string(l.Owner))
		}
	}
	if rules == nil {
		return ask
	}
	ask.Gang.Shapes = slices.Clone(ask.Gang.Shapes)
	for i, shape := range ask.Gang.Shapes {
		barred := slices.Clone(rules)
		for node, rule := range shape.Barred {
			if rule != "" {
				barred[node] = rule
			}
		}
		ask.Gang.Shapes[i].Barred = barred
	}
	return ask
}
