package cluster

import (
	"context"
	"errors"
	"slices"
)

// errNoController indicates that the cluster runs no lockstep-controller.
var errNoController = errors.New("no lockstep-controller runs")

// ReplaceController stops lockstep-controller and starts another executable of it in its place, with the same flags and access, as
// an upgrade does. It returns when the new one is ready.
func (c *Cluster) ReplaceController(ctx context.Context, executable string) error {
	controller := c.plan.controller()
	old := c.dismiss(controller.name)
	if old == nil {
		return errNoController
	}
	old.stop(ctx)
	controller.binary, controller.version = executable, moduleVersion(executable, modulePath)
	return c.run(ctx, controller)
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
	c.processes = slices.Delete(slices.Clone(c.processes), i, i+1)
	c.versions = slices.Delete(slices.Clone(c.versions), i, i+1)
	return dismissed
}
