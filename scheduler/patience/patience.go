// Package patience measures the time for which a gang that starts makes no progress.
//
// A large gang starts for minutes at a client's request limit, and a device or a volume may take ten. So no start is
// judged by its duration, only by the time since a member last got further. Permit, PreBind, Bind and the watch for
// incomplete gangs share one clock per gang.
package patience

import (
	"sync"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/topology"
)

// Limits bound the time for which the gangs of a scheduler may stand still.
type Limits struct {
	// Grace is the limit between the decision and the last binding, except for the preparation of a binding.
	Grace time.Duration
	// Preparation is the limit while members get their devices and volumes. In-tree plugins allow ten minutes for
	// either.
	Preparation time.Duration
	// Repair bounds the time for which a gang that ran may lack members that it needs.
	Repair time.Duration
}

// Of returns the limit for a gang: that of its annotation lockstep.dev/start-patience, or else the given one. A value
// that cannot be read counts as none.
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

// Stage is the progress of one member in a start.
type Stage int

// The stages of a member, in order.
const (
	// Placed members wait at Permit.
	Placed Stage = iota + 1
	// Prepared members have their devices and volumes.
	Prepared
	// Binding members are about to be bound.
	Binding
	// Bound members have their nodes.
	Bound
)

// Clocks has a clock for each gang of a scheduler. It may be used from several goroutines.
type Clocks struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	gangs map[types.NamespacedName]*progress
}

// progress is that of one gang.
type progress struct {
	// moved is the time of the last progress, stages the latest stage of each member.
	moved  time.Time
	stages map[types.UID]Stage
}

// NewClocks returns clocks that read the time from c.
func NewClocks(c clock.PassiveClock) *Clocks {
	return &Clocks{clock: c, gangs: make(map[types.NamespacedName]*progress)}
}

// Begin starts the clock of a gang none of whose members has a node: the progress of members in an earlier start does
// not count.
func (c *Clocks) Begin(gang types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gangs, gang)
	c.of(gang)
}

// Further restarts the clock of a gang if the member has not been at the stage before. A member that fails there and is
// tried again is no progress: the others would hold their nodes for ever.
func (c *Clocks) Further(gang types.NamespacedName, member types.UID, to Stage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.of(gang); p.stages[member] < to {
		p.stages[member], p.moved = to, c.clock.Now()
	}
}

// Restart restarts the clock of a gang that another scheduler has begun to start.
func (c *Clocks) Restart(gang types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(gang).moved = c.clock.Now()
}

// of returns the progress of a gang, which begins now if there is none.
func (c *Clocks) of(gang types.NamespacedName) *progress {
	p := c.gangs[gang]
	if p == nil {
		p = &progress{moved: c.clock.Now(), stages: make(map[types.UID]Stage)}
		c.gangs[gang] = p
	}
	return p
}

// Left returns the time for which the gang may still make no progress under a limit, 0 if it has exceeded it. It starts
// the clock of a gang that has none.
func (c *Clocks) Left(gang types.NamespacedName, limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(limit-c.clock.Now().Sub(c.of(gang).moved), 0)
}

// Forget drops the clock of a gang that is deleted.
func (c *Clocks) Forget(gang types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gangs, gang)
}
