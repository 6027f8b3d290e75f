package contention

import (
	"cmp"
	"time"
)

// Order is the place of an entity in the queue (rule 1).
type Order struct {
	// Replacement says that the entity replaces lost members of a gang that was whole. It precedes all others.
	Replacement bool
	Priority    int32
	// Since is the instant at which the entity became ready. Eviction does not change it.
	Since           time.Time
	Namespace, Name string
}

// Compare returns a negative number if o precedes p: replacements first, then the higher priority, the longer wait, the
// namespace and the name.
func (o Order) Compare(p Order) int {
	return cmp.Or(
		compareBools(p.Replacement, o.Replacement),
		cmp.Compare(p.Priority, o.Priority),
		o.Since.Compare(p.Since),
		cmp.Compare(o.Namespace, p.Namespace),
		cmp.Compare(o.Name, p.Name),
	)
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
