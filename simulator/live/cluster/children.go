package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// readyWithin limits the start of a component.
	readyWithin = 90 * time.Second
	// lookEvery is the time between two probes of its health.
	lookEvery = 100 * time.Millisecond
)

// run starts components side by side and waits until all are ready.
func (c *Cluster) run(ctx context.Context, components ...component) error {
	c.launching.Lock()
	started, err := c.launchAll(ctx, components)
	c.launching.Unlock()
	if err != nil {
		return err
	}
	return c.await(ctx, started)
}

// replace starts a component in place of the one of its name, and returns when it is ready.
func (c *Cluster) replace(ctx context.Context, child component) error {
	c.launching.Lock()
	if old := c.dismiss(child.name); old != nil {
		old.stop(ctx)
	}
	started, err := c.launchAll(ctx, []component{child})
	c.launching.Unlock()
	if err != nil {
		return err
	}
	return c.await(ctx, started)
}

// launchAll starts components, and returns their processes in the same order. The caller holds c.launching.
func (c *Cluster) launchAll(ctx context.Context, components []component) ([]*process, error) {
	started := make([]*process, len(components))
	for i, child := range components {
		c.plan.ports.release(child.ports...)
		var err error
		if started[i], err = c.launch(ctx, child, 0); err != nil {
			return nil, err
		}
	}
	return started, nil
}

// launch starts a component, which has failed so often in a row before, and watches over it. The caller holds
// c.launching.
func (c *Cluster) launch(ctx context.Context, child component, failures int) (*process, error) {
	p, err := c.spawn(child, failures)
	if err != nil {
		return nil, err
	}
	go c.watch(context.WithoutCancel(ctx), p)
	return p, nil
}

// spawn starts a component and lists it. The caller holds c.launching, and watches over the process.
func (c *Cluster) spawn(child component, failures int) (*process, error) {
	p, err := c.spawner.start(child, c.plan.state.path("logs", child.name+".log"))
	if err != nil {
		return nil, err
	}
	p.failures = failures
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	c.versions = append(c.versions, child.version)
	return p, nil
}

// await waits until children are ready.
func (c *Cluster) await(ctx context.Context, children []*process) error {
	for _, p := range children {
		err := wait.PollUntilContextTimeout(ctx, lookEvery, readyWithin, true,
			func(ctx context.Context) (bool, error) { return c.healthy(ctx, p.component.health) })
		if err != nil {
			return c.orDeath(
				fmt.Errorf("%s is not ready: %w; the end of %s:\n%s", p.name, err, p.log, tail(p.log, 12)),
			)
		}
		p.ready.Store(true)
	}
	return nil
}

// healthy asks a component once. A component that died ends the waiting.
func (c *Cluster) healthy(ctx context.Context, url string) (bool, error) {
	if len(c.died) > 0 {
		return false, errors.New("a component ended")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := c.probes.Do(request)
	if response == nil || err != nil {
		return false, ctx.Err() // it does not listen yet, which is an answer
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

// watch waits until a child ends. An unexpected end is reported, or the child is started again.
func (c *Cluster) watch(ctx context.Context, p *process) {
	<-p.exited
	switch {
	case p.revives():
		c.revive(ctx, p)
	case c.disown(p):
		c.die(p.death())
	}
}

// disown takes a child that has ended off the list of those that must not end, and reports whether it was there.
func (c *Cluster) disown(p *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || !slices.Contains(c.processes, p) {
		return false
	}
	c.forget(slices.Index(c.processes, p))
	return true
}

// die reports the first death, because it explains the others.
func (c *Cluster) die(death *DeathError) {
	select {
	case c.died <- death:
	default:
	}
}
