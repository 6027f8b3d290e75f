package decision

import (
	"cmp"
	"time"
)

// Order is the place of a gang, or of a pod that is in none, in the queue.
type Order struct {
	Priority int32
	// Since is when it began to wait.
	Since           time.Time
	Namespace, Name string
}

// Compare puts the higher priority first, then who waits longer, then the name. It is negative if o is before p.
func (o Order) Compare(p Order) int {
	return cmp.Or(
		cmp.Compare(p.Priority, o.Priority),
		o.Since.Compare(p.Since),
		cmp.Compare(o.Namespace, p.Namespace),
		cmp.Compare(o.Name, p.Name),
	)
}
