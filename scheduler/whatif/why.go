package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// ErrNoGang indicates that there is no gang of that name: no PodGroup, or one whose pods start one by one.
var ErrNoGang = errors.New("no such gang")

// Names returns the names of all gangs, sorted.
func (w *WhatIf) Names() []types.NamespacedName {
	var names []types.NamespacedName
	for _, group := range w.objects.PodGroups {
		if group.Spec.SchedulingPolicy.Gang != nil {
			names = append(names, types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return names
}

// Why returns the scheduler's decision about a gang. The error is an ErrNoGang, or a fault of the fleet's objects.
func (w *WhatIf) Why(ctx context.Context, name types.NamespacedName) (Verdict, error) {
	c, err := w.newCluster()
	if err != nil {
		return Verdict{}, err
	}
	g := c.gangs[name]
	if g == nil {
		return Verdict{}, fmt.Errorf("%s: %w", name, ErrNoGang)
	}
	if len(g.waiting) == 0 && len(g.running) >= g.minCount() {
		return c.there(g)
	}
	if v, out := c.outside(g); out {
		return v, nil
	}
	verdicts, err := c.play(ctx)
	if err != nil {
		return Verdict{}, err
	}
	at := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Gang.Name == name })
	return verdicts[at], nil
}

// Queue returns the scheduler's decision about every waiting gang: those of the queue in its order, then those that are
// not in it because they are incomplete, by name. A group all of whose pods have ended lingers, and waits for nothing.
func (w *WhatIf) Queue(ctx context.Context) ([]Verdict, error) {
	c, err := w.newCluster()
	if err != nil {
		return nil, err
	}
	var outside []Verdict
	for _, g := range c.sorted() {
		runs := len(g.waiting) == 0 && len(g.running) >= g.minCount()
		if v, out := c.outside(g); out && !runs && !w.over[g.key] && v.State == Incomplete {
			outside = append(outside, v)
		}
	}
	verdicts, err := c.play(ctx)
	return append(verdicts, outside...), err
}

// outside returns the verdict about a gang that is not in our scheduler's queue.
func (c *cluster) outside(g *gang) (Verdict, bool) {
	switch {
	case g.scheduler() != "" && g.scheduler() != c.profile.Scheduler:
		return Verdict{Gang: c.describe(g), State: Foreign}, true
	case !g.complete():
		return Verdict{Gang: c.describe(g), State: Incomplete, Missing: missing(g)}, true
	}
	return Verdict{}, false
}

// play runs the queue, and returns the verdicts about all that wait at its beginning, in order.
func (c *cluster) play(ctx context.Context) ([]Verdict, error) {
	r, err := c.newRun(ctx)
	if err != nil {
		return nil, err
	}
	var asked []Gang
	for i, id := range r.queue.Waiting() {
		name, _ := waiting.NameOf(id)
		described := c.describe(c.gangs[name])
		described.Position = i + 1
		asked = append(asked, described)
	}
	return r.verdictsOf(ctx, asked)
}

// verdictsOf lets the queue settle, and returns the verdicts about these gangs.
func (r *run) verdictsOf(ctx context.Context, asked []Gang) ([]Verdict, error) {
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	reserved, err := r.reservations(ctx)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, len(asked))
	for i, described := range asked {
		v, decided := r.verdicts[waiting.IDOf(described.Name)]
		if !decided { // it was evicted, and cannot start again
			v.State = Waits
		}
		v.Gang = described
		verdicts[i] = reserved.of(v)
	}
	return verdicts, nil
}

// describe describes a gang, except for its place in the queue.
func (c *cluster) describe(g *gang) Gang {
	late, _ := snapshot.Late(g.group, g.waiting, g.running) // its fault is in the verdict
	all := slices.Concat(g.waiting, g.running, late)
	return Gang{
		Name: g.key, Priority: g.order.Priority, Since: g.order.Since,
		Members: len(all), Needed: g.minCount(), Runs: len(g.running),
		Accelerators: c.wants(g.group, all), Claims: c.stock.Claims(g.waiting), Scheduler: g.scheduler(),
		Forecast: g.told(),
	}
}

// there is the verdict about a gang that runs.
func (c *cluster) there(g *gang) (Verdict, error) {
	v := Verdict{Gang: c.describe(g), State: Placed}
	view, err := c.indices.View(c.nodes, c.resources, snapshot.Required(g.group))
	if err != nil {
		return v, fmt.Errorf("reading the fleet for %s: %w", g.key, err)
	}
	core, err := view.Gang(g.group, nil, g.running, nil)
	if err != nil { // it did not matter when it was placed, or was changed since
		v.Problem = err.Error()
		return v, nil //nolint:nilerr // that is the verdict
	}
	gang, at := placed(core)
	v.Where = where(view, gang, at)
	return v, nil
}
