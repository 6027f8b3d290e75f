package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// revivalPause is the time between the end of a component and its next start, about that of a kubelet.
	revivalPause = time.Second
	// mostFailures limits consecutive starts that do not become ready. The next one is a death.
	mostFailures = 60
)

// revives reports whether a child that has ended is started again, as its Deployment does. A scheduler exits with 1
// when it loses its lease (the API server was away, or the machine slept) and with 0 when gangs move to another API. A
// panic or a bad configuration has another exit code and remains a death, which ends up and the tests with a message.
func (p *process) revives() bool {
	code := p.cmd.ProcessState.ExitCode()
	return p.component.revivable && (code == 0 || code == 1) && (p.ready.Load() || p.failures < mostFailures)
}

// revive restarts a child that has ended, unless it was stopped or its replacement runs already. It holds c.launching
// from the moment at which the child leaves the list until the next one is on it, so that StopRelease and replace find
// the one or the other.
func (c *Cluster) revive(ctx context.Context, old *process) {
	failures := old.failures + 1
	if old.ready.Load() {
		failures = 0
	}
	c.launching.Lock()
	defer c.launching.Unlock()
	if !c.disown(old) {
		return
	}
	clock.RealClock{}.Sleep(revivalPause)
	if c.runs(old.name) {
		return
	}
	p, err := c.launch(ctx, old.component, failures)
	if err != nil {
		c.die(old.death())
		return
	}
	go c.seeReady(ctx, p)
}

// seeReady polls a child until it is ready or has ended.
func (c *Cluster) seeReady(ctx context.Context, p *process) {
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.exited:
			return true, nil
		default:
		}
		up, err := c.healthy(ctx, p.component.health)
		p.ready.Store(up)
		return up, err
	}) // one that is never ready counts as such when it ends
}

// runs reports whether a component of that name runs, or everything stops.
func (c *Cluster) runs(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping || slices.ContainsFunc(c.processes, func(p *process) bool { return p.name == name })
}

// Scheduler is the lockstep-scheduler that runs; one without a PID while none does.
func (c *Cluster) Scheduler() Component {
	name := c.plan.scheduler().name
	for _, running := range c.Components() {
		if running.Name == name {
			return running
		}
	}
	return Component{Name: name}
}

// AwaitScheduler waits until lockstep-scheduler has ended by itself, was started again and is ready. old is the one
// that has to end.
func (c *Cluster) AwaitScheduler(ctx context.Context, old Component) error {
	health := c.plan.scheduler().health
	err := wait.PollUntilContextTimeout(ctx, lookEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		if now := c.Scheduler(); now.PID == 0 || now.PID == old.PID {
			return false, nil
		}
		return c.healthy(ctx, health)
	})
	if err != nil {
		return c.orDeath(fmt.Errorf("waiting for the next lockstep-scheduler: %w", err))
	}
	return nil
}
