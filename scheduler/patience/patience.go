// Package patience measures how long a gang that starts stands still.
//
// A large gang starts for minutes at a client's request limit, and a device or a volume may take ten. So no start is judged by how long it
// takes, only by how long none of its members got further. Permit, PreBind, Bind and the watch for incomplete gangs share one clock per gang.
package patience

import (
	"sync"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/topology"
)

// Limits are how long the gangs of a scheduler may stand still.
type Limits struct {
	// Grace is the limit between the decision and the last binding, but for what precedes a binding.
	Grace time.Duration
	// Preparation is the limit while members get their devices and volumes. In-tree plugins allow ten minutes for either.
	Preparation time.Duration
	// Repair is how long a gang that ran may lack members that it needs.
	Repair time.Duration
}

// Of returns the limit for a gang: what its annotation lockstep.dev/start-patience says, or else the given one. A value that cannot be read
// counts as none.
func Of(group *schedulingv1beta1.PodGroup, limit time.Duration) time.Duration {
	if group == nil {
		return limit
	}
	text, ok := group.Annotations[topology.AnnotationStartPatience]
	if !ok {
		return limit
	}
	own, err := topology.ParsePatience(text)
	if err != nil {
		return limit
	}
	return time.Duration(own) * time.Second
}

// Clocks has a clock for each gang of a scheduler. It may be used from several goroutines.
type Clocks struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// moved is when a member of the gang last got further.
	moved map[types.NamespacedName]time.Time
}

// NewClocks returns clocks that read the time from c.
func NewClocks(c clock.PassiveClock) *Clocks {
	return &Clocks{clock: c, moved: make(map[types.NamespacedName]time.Time)}
}

// Further restarts the clock of a gang: one of its members got further.
func (c *Clocks) Further(gang types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved[gang] = c.clock.Now()
}

// Left returns how long the gang may still stand still under a limit, 0 if it has exceeded it. It starts the clock of a gang that has none.
func (c *Clocks) Left(gang types.NamespacedName, limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	moved, ok := c.moved[gang]
	if !ok {
		c.moved[gang], moved = now, now
	}
	return max(limit-now.Sub(moved), 0)
}

// Forget drops the clock of a gang that is deleted.
func (c *Clocks) Forget(gang types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.moved, gang)
}
