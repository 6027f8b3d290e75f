package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// errNoController indicates that the cluster runs no lockstep-controller.
var errNoController = errors.New("no lockstep-controller runs")

// ReplaceController stops lockstep-controller and starts another executable of it in its place, with the same flags and
// access, as an upgrade does. It returns when the new one is ready.
func (c *Cluster) ReplaceController(ctx context.Context, executable string) error {
	if err := c.StopController(ctx); err != nil {
		return err
	}
	controller := c.plan.controller()
	controller.binary, controller.version = executable, moduleVersion(executable, sourcetree.Module)
	return c.run(ctx, controller)
}

// StopController stops lockstep-controller. Its webhooks stay registered.
func (c *Cluster) StopController(ctx context.Context) error {
	old := c.withdraw(c.plan.controller().name)
	if old == nil {
		return errNoController
	}
	old.stop(ctx)
	return nil
}

// StartController starts lockstep-controller again, with flags that win over its usual ones, and returns when it is
// ready.
func (c *Cluster) StartController(ctx context.Context, flags ...string) error {
	controller := c.plan.controller()
	controller.args = append(controller.args, flags...)
	return c.run(ctx, controller)
}

// RestartController stops lockstep-controller and starts it again.
func (c *Cluster) RestartController(ctx context.Context) error {
	return c.ReplaceController(ctx, c.plan.binaries.Controller)
}

// Regate stops the control plane and starts it again with the feature gates of another mode, as an upgrade of the
// cluster does. The state stays. It returns when the new one is ready.
func (c *Cluster) Regate(ctx context.Context, mode probe.Mode) error {
	for _, old := range []component{c.plan.stockScheduler(), c.plan.controllerManager(), c.plan.apiserver()} {
		if p := c.withdraw(old.name); p != nil {
			p.stop(ctx)
		}
	}
	c.plan.mode = mode
	if err := c.run(ctx, c.plan.apiserver()); err != nil {
		return err
	}
	return c.run(ctx, c.plan.controllerManager(), c.plan.stockScheduler())
}

// Gate is Regate for feature gates of Kubernetes' components, NAME=true, beside those of the mode.
func (c *Cluster) Gate(ctx context.Context, gates ...string) error {
	c.plan.extra = gates
	return c.Regate(ctx, c.plan.mode)
}

// RestartScheduler stops lockstep-scheduler, and starts it again with flags that win over its usual ones.
func (c *Cluster) RestartScheduler(ctx context.Context, flags ...string) error {
	scheduler := c.plan.scheduler()
	scheduler.args = append(scheduler.args, flags...)
	return c.replace(ctx, scheduler)
}

// withdraw is dismiss for good: a component between two of its lives, such as a scheduler that has lost its lease, is
// started again first, so that it is on the list.
func (c *Cluster) withdraw(name string) *process {
	c.launching.Lock()
	defer c.launching.Unlock()
	return c.dismiss(name)
}

// dismiss takes a component off the list of those that must not end; nil if it is not there.
func (c *Cluster) dismiss(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	dismissed := c.processes[i]
	c.forget(i)
	return dismissed
}

// forget takes the i-th child off the list. The caller holds c.mu.
func (c *Cluster) forget(i int) {
	c.processes = slices.Delete(slices.Clone(c.processes), i, i+1)
	c.versions = slices.Delete(slices.Clone(c.versions), i, i+1)
}
