package whatif

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// Rest is the cluster as values when the queue has settled: from then on only ends change something.
type Rest struct {
	// Ledger is the free room then, without that reserved for late members.
	Ledger topology.Ledger
	// Accelerator is the entry of a Capacity that counts accelerators (the first of several), its length if there is
	// none.
	Accelerator int
	// Running are the running units, by name.
	Running []*contention.Unit
	// Waiting are the gangs that wait, in the queue's order, but for those whose level the fleet's tree does not have,
	// and for those that claim devices: two gangs may claim the same devices, which numbers by gang cannot say.
	Waiting []Waiting
}

// Waiting is a gang that waits.
type Waiting struct {
	Name         types.NamespacedName
	Order        contention.Order
	Ask          contention.Ask
	Accelerators int64
	// Sweep is the set of trials to which it belongs.
	Sweep contention.Sweep
}

// Rest runs the queue.
func (w *WhatIf) Rest(ctx context.Context) (Rest, error) {
	c, err := w.newCluster()
	if err != nil {
		return Rest{}, err
	}
	r, err := c.newRun(ctx)
	if err != nil {
		return Rest{}, err
	}
	if err := r.settle(ctx); err != nil {
		return Rest{}, err
	}
	view, err := c.plain()
	if err != nil {
		return Rest{}, err
	}
	out := Rest{}
	for _, id := range r.queue.Waiting() {
		name, _ := waiting.NameOf(id)
		if one, ok := c.waitingIn(view, c.gangs[name]); ok {
			out.Waiting = append(out.Waiting, one)
		}
	}
	out.Ledger = view.Ledger(r.late())
	out.Running = view.Contenders(c.groups, snapshot.Reading{Accelerators: c.accelerators, Devices: c.stock.Held}).All()
	kinds := view.Resources()
	out.Accelerator = slices.IndexFunc(kinds, func(name corev1.ResourceName) bool {
		return slices.Contains(c.accelerators, name)
	})
	if out.Accelerator < 0 {
		out.Accelerator = len(kinds)
	}
	return out, nil
}

// waitingIn reads a gang that waits; false for one that asks for more than the plain view has.
func (c *cluster) waitingIn(view snapshot.View, g *gang) (Waiting, bool) {
	core, err := view.Gang(g.group, g.waiting, g.running, nil)
	if err != nil || c.stock.Claims(g.waiting) {
		return Waiting{}, false
	}
	if _, known := view.Tree.Level(core.Required); core.Required != "" && !known {
		return Waiting{}, false
	}
	return Waiting{
		Name: g.key, Order: g.order, Accelerators: c.wants(g.group, g.waiting),
		Ask:   contention.Ask{Gang: core, Needed: g.needed(), End: snapshot.EndOf(g.group)},
		Sweep: snapshot.SweepOf(g.group),
	}, true
}

// late is the room by node that is leased to entities that do not wait.
func (r *run) late() waiting.Room {
	out := make(waiting.Room)
	for _, of := range r.queue.Leases() {
		if of.Lease.Reason == contention.Head || of.Lease.Reason == contention.Preemption {
			continue
		}
		for node, room := range of.Room {
			out[node] = quota.Add(out[node], room)
		}
	}
	return out
}
