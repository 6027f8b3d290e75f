package contention

import (
	"cmp"
	"time"
)

// Order is the place of an entity in the queue (basic rule 1).
type Order struct {
	// Replacement says that the entity replaces lost members of a gang that was whole. It precedes all others.
	Replacement bool
	// Grows says that the entity has all that it needs, and would take more: members beyond the fewest of an elastic
	// gang that runs. All others precede it.
	Grows    bool `json:",omitempty"`
	Priority int32
	// Since is the instant at which the entity became ready, by the clock of Snapshot.Now. Eviction does not change it.
	Since time.Time
	// Due orders entities of one priority before Since does. The zero time is Since. The machine sets it, by the
	// entity's Discipline (DecideOrder).
	Due             time.Time `json:"Due,omitzero"`
	Namespace, Name string
}

// Compare returns a negative number if o precedes p: replacements first, entities that only grow last, then the higher
// priority, the earlier due, the longer wait, the namespace and the name.
func (o Order) Compare(p Order) int {
	return cmp.Or(
		compareBools(p.Replacement, o.Replacement),
		compareBools(o.Grows, p.Grows),
		cmp.Compare(p.Priority, o.Priority),
		o.due().Compare(p.due()),
		o.Since.Compare(p.Since),
		cmp.Compare(o.Namespace, p.Namespace),
		cmp.Compare(o.Name, p.Name),
	)
}

func (o Order) due() time.Time {
	if o.Due.IsZero() {
		return o.Since
	}
	return o.Due
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
