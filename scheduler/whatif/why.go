package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/victims"
	"github.com/lockstep-project/lockstep/topology"
)

// ErrNoGang indicates that there is no gang of that name: no PodGroup, or one whose pods start one by one.
var ErrNoGang = errors.New("no such gang")

// Names are all gangs, by name.
func (r *WhatIf) Names() []types.NamespacedName {
	var names []types.NamespacedName
	for _, group := range r.objects.PodGroups {
		if group.Spec.SchedulingPolicy.Gang != nil {
			names = append(names, types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return names
}

// Why says what the scheduler would decide about a gang. The error is an ErrNoGang, or a fault of the fleet's objects.
func (r *WhatIf) Why(ctx context.Context, name types.NamespacedName) (Verdict, error) {
	s, err := r.newStage()
	if err != nil {
		return Verdict{}, err
	}
	g := s.gangs[name]
	if g == nil {
		return Verdict{}, fmt.Errorf("%s: %w", name, ErrNoGang)
	}
	p := s.play(s.queue())
	described := p.describe(g)
	switch {
	case len(g.waiting) == 0 && len(g.running) >= g.minCount():
		return p.there(described, g)
	case g.scheduler() != "" && g.scheduler() != r.profile.Scheduler:
		return Verdict{Gang: described, State: Foreign}, nil
	case !g.complete():
		return Verdict{Gang: described, State: Incomplete, Missing: missing(g)}, nil
	}
	o, _, err := p.until(ctx, name)
	if err != nil {
		return Verdict{}, err
	}
	return p.verdict(ctx, described, g, o)
}

// Queue says what the scheduler would decide about every gang that waits: those of the queue in its order, then those that are not
// in it because they are incomplete, by name.
func (r *WhatIf) Queue(ctx context.Context) ([]Verdict, error) {
	s, err := r.newStage()
	if err != nil {
		return nil, err
	}
	var verdicts, outside []Verdict
	for _, g := range s.sorted() {
		foreign := g.scheduler() != "" && g.scheduler() != r.profile.Scheduler
		runs := len(g.waiting) == 0 && len(g.running) >= g.minCount()
		if !foreign && !runs && !g.complete() {
			outside = append(outside, Verdict{Gang: s.describe(g), State: Incomplete, Missing: missing(g)})
		}
	}
	p := s.play(s.queue())
	described := make(map[types.NamespacedName]Gang, len(p.queue))
	for i, g := range p.queue {
		described[g.key] = s.describe(g)
		d := described[g.key]
		d.Position = i + 1
		described[g.key] = d
	}
	for {
		g, o, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		if g == nil {
			return append(verdicts, outside...), nil
		}
		if d, waits := described[g.key]; waits { // who is preempted only now is in nobody's queue yet
			v, err := p.verdict(ctx, d, g, o)
			if err != nil {
				return nil, err
			}
			verdicts = append(verdicts, v)
		}
		if err := p.apply(ctx, g, o); err != nil {
			return nil, err
		}
	}
}

// describe says what a gang is, but for its place in the queue.
func (s *stage) describe(g *gang) Gang {
	late, _ := snapshot.Late(g.group, g.waiting, g.running) // what is wrong with it is in the verdict
	all := slices.Concat(g.waiting, g.running, late)
	return Gang{
		Name: g.key, Priority: g.order.Priority, Since: g.order.Since,
		Members: len(all), Needed: g.minCount(), Runs: len(g.running),
		Accelerators: s.wants(g.group, all), Claims: s.stock.Claims(g.waiting), Scheduler: g.scheduler(),
	}
}

// describe adds the place in the queue.
func (p *play) describe(g *gang) Gang {
	d := p.stage.describe(g)
	d.Position = 1 + slices.IndexFunc(p.queue, func(other *gang) bool { return other.key == g.key })
	return d
}

// there is the verdict about a gang that runs.
func (p *play) there(d Gang, g *gang) (Verdict, error) {
	view, err := p.view(g.group)
	if err != nil {
		return Verdict{}, err
	}
	core, wrong := read(view, g.group, nil, g.running)
	if wrong != nil { // it did not matter when it was placed, or was changed since
		return Verdict{Gang: d, State: Placed, Problem: wrong.String()}, nil
	}
	placement := topology.Placement{Gang: core.Name}
	core.Members = slices.DeleteFunc(core.Members, func(m topology.Member) bool { return !m.Placed })
	for _, m := range core.Members {
		placement.Nodes = append(placement.Nodes, m.Node)
	}
	return Verdict{Gang: d, State: Placed, Where: where(view, core, placement)}, nil
}

// verdict says what became of the gang in its turn. It must be asked before the stage changes.
func (p *play) verdict(ctx context.Context, d Gang, g *gang, o outcome) (v Verdict, err error) {
	v = p.said(d, g, o)
	switch {
	case o.kept != nil && o.choice == nil:
		v.Kept, err = p.place(ctx, p.head)
	case v.Behind != nil:
		v.Kept, err = p.place(ctx, o.head)
	}
	return v, err
}

// said is the verdict but for the place that is kept.
func (p *play) said(d Gang, g *gang, o outcome) Verdict {
	v := Verdict{Gang: d, Spared: o.spared}
	no := o.answer.Refusal
	switch {
	case no == nil:
		v.State, v.Where = Fits, where(o.view, o.answer.Gang, o.answer.Placement)
		return v
	case no.Wrong != nil:
		v.State, v.Problem = Wrong, no.String()
		return v
	case o.choice != nil:
		v.State, v.Preemption = Preempts, p.preemption(o)
		v.Where = where(o.view, o.answer.Gang, o.choice.Placement)
		if o.moves {
			v.State = Moves
		}
	default:
		v.State = Waits
	}
	if o.own != nil && (o.kept == nil || o.choice != nil) {
		v.Behind = behind(g, o)
		return v
	}
	v.Shortfall, v.Note = no.Short, o.asked.questions[0].Note()
	return v
}

// where says where a placement is.
func where(view snapshot.View, gang topology.Gang, placement topology.Placement) *Where {
	out := &Where{}
	levels := view.Tree.Levels()
	for rank, node := range placement.Nodes {
		m := gang.Members[rank]
		seat := Seat{Rank: rank, Member: m.Name, Node: view.Tree.Node(node), Late: m.Late, New: !m.Placed}
		for level := range levels {
			if domain, ok := view.Tree.Domain(node, level); ok {
				seat.Domains = append(seat.Domains, domain)
			}
		}
		out.Seats = append(out.Seats, seat)
	}
	out.Within = common(out.Seats)
	return out
}

// common is the innermost domain in which all seats are; the zero Domain if only the fleet is.
func common(seats []Seat) topology.Domain {
	if len(seats) == 0 {
		return topology.Domain{}
	}
	for _, domain := range slices.Backward(seats[0].Domains) {
		if !slices.ContainsFunc(seats, func(s Seat) bool {
			return !slices.ContainsFunc(s.Domains, func(d topology.Domain) bool { return same(d, domain) })
		}) {
			return domain
		}
	}
	return topology.Domain{}
}

func same(a, b topology.Domain) bool { return a.Level == b.Level && slices.Equal(a.Path, b.Path) }

// behind says how a gang would be in the way of the first.
func behind(g *gang, o outcome) *Behind {
	b := &Behind{Own: *where(o.view, o.own.Gang, o.own.Placement), End: snapshot.ExpectedEnd(g.group)}
	for _, seat := range b.Own.Seats {
		if _, kept := o.head.rooms[seat.Node]; kept && !slices.Contains(b.Shared, seat.Node) {
			b.Shared = append(b.Shared, seat.Node)
		}
	}
	return b
}

// preemption says who would leave.
func (r *WhatIf) preemption(o outcome) *Preemption {
	out := &Preemption{Cheapest: o.choice.Optimal && !o.moves}
	var pods []*corev1.Pod
	for _, u := range o.choice.Victims {
		if u.Domain != "" { // it leaves by itself
			continue
		}
		v := Victim{
			Name: u.Name, Priority: u.Priority, Pods: len(u.Pods), Leaving: u.Leaving(),
			Accelerators: u.Accelerators(r.accelerators), Lost: victims.Lost(u, r.accelerators, r.now),
		}
		pods, out.Victims = slices.Concat(pods, u.Pods), append(out.Victims, v)
		out.Lost += v.Lost
	}
	out.Exceeded = r.exceeded(pods)
	return out
}

// exceeded are the budgets that these pods exceed if they leave.
func (r *WhatIf) exceeded(pods []*corev1.Pod) []string {
	var names []string
	for _, budget := range victims.Exceeded(r.objects.Budgets, pods) {
		names = append(names, budget.Namespace+"/"+budget.Name)
	}
	slices.Sort(names)
	return names
}

// instant is an end as the core has it; zero if nobody knows.
func instant(end int64) time.Time {
	if end == topology.EndUnknown || end == decision.Someday || end == topology.Now {
		return time.Time{}
	}
	return time.Unix(end, 0).UTC()
}
