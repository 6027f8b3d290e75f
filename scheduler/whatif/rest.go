package whatif

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Scene is the cluster as values when the queue has been played through once: who fits runs, and who is preempted waits again.
type Scene struct {
	// Ledger is what is free then, without what is held for late members to come.
	Ledger topology.Ledger
	// Accelerator is the entry of a Capacity that counts accelerators (the first of several), its length if there is none.
	Accelerator int
	// Running is what runs and when it ends, as far as anybody knows, in seconds since 1970.
	Running []topology.Running
	// Waiting is who waits still, in the queue's order, but for gangs whose level this fleet's tree does not have, and for those that
	// claim devices: what two gangs claim may be the same devices, and numbers by gang cannot say so.
	Waiting []Waiting
}

// Waiting is a gang that waits.
type Waiting struct {
	Name         types.NamespacedName
	Order        decision.Order
	Ask          decision.Ask
	Accelerators int64
}

// accelerates reports whether a resource is one of accelerators.
func (s *stage) accelerates(name corev1.ResourceName) bool {
	return slices.Contains(s.accelerators, name)
}

// Scene is what comes after the present: from here on only ends change something.
func (r *WhatIf) Scene(ctx context.Context) (Scene, error) {
	s, err := r.newStage()
	if err != nil {
		return Scene{}, err
	}
	var left []*gang
	p := s.play(s.queue())
	for {
		g, o, err := p.next(ctx)
		if err != nil {
			return Scene{}, err
		}
		if g == nil {
			break
		}
		if !o.starts() {
			left = append(left, g)
		}
		if err := p.apply(ctx, g, o); err != nil {
			return Scene{}, err
		}
	}
	slices.SortFunc(left, byOrder)
	view, err := s.indices.Plain(s.nodes, s.resources)
	if err != nil {
		return Scene{}, fmt.Errorf("reading the fleet: %w", err)
	}
	out := Scene{
		Ledger:  view.Ledger(s.heldFor(types.NamespacedName{})),
		Running: snapshot.Ends(view.Units(s.groups)),
	}
	kinds := view.Resources()
	if out.Accelerator = slices.IndexFunc(kinds, s.accelerates); out.Accelerator < 0 {
		out.Accelerator = len(kinds)
	}
	for _, g := range left {
		core, wrong := read(view, g.group, g.waiting, g.running)
		if _, known := view.Tree.Level(
			core.Required,
		); wrong != nil || core.Required != "" && !known ||
			s.stock.Claims(g.waiting) {
			continue
		}
		out.Waiting = append(out.Waiting, Waiting{
			Name: g.key, Order: g.order, Accelerators: s.wants(g.group, g.waiting),
			Ask: decision.Ask{Gang: core, Needed: g.needed(), End: snapshot.EndOf(g.group)},
		})
	}
	return out, nil
}
