package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// decided returns the queue's decision about a gang. It has to be called before the cluster changes: a view is valid
// until then. Reservations are added when the queue is at rest.
func (r *run) decided(g *gang, x *waiting.Question, out waiting.Outcome) Verdict {
	if p := out.Placed; p != nil {
		return Verdict{State: Fits, Where: where(x.View, p.Gang, p.Placement), Passes: namesOf(p.Passed)}
	}
	v := Verdict{State: Waits, Cause: out.Wait.Cause, Sweep: out.Wait.Sweep}
	if v.Sweep != nil {
		return v
	}
	switch no := out.Wait.Refusal; {
	case no != nil && no.Wrong != nil:
		return Verdict{State: Wrong, Problem: no.String()}
	case no != nil:
		v.Shortfall, v.Note = no.Short, x.Choices[0].Note()+out.Wait.Note()
	case out.Wait.Cause == contention.OtherLease:
		v.Behind = &Behind{At: instant(out.Wait.At), End: snapshot.ExpectedEnd(g.group)}
		for _, name := range namesOf(out.Wait.Of) {
			v.Behind.Of = append(v.Behind.Of, Reservation{For: name})
		}
	}
	if v.Shortfall != nil && v.Cause == contention.NoEnd && !v.Shortfall.Never {
		v.Services = services(x)
	}
	if v.Shortfall != nil && out.Wait.Cause == contention.OtherLease {
		v.After = namesOf(out.Wait.Of)
	}
	if leave := leaving(out); len(leave) > 0 {
		v.Preemption = r.preemption(x, leave, optimal(out))
	}
	if v.Preemption == nil {
		v.NoVictims = r.noVictims(g, x, out.Wait.Unpaid)
		return v
	}
	if out.Wait.Cause == contention.Victims {
		v.State = Preempts
		v.Where = r.reserved(g.id(), x)
	}
	return v
}

// services returns the units with accelerators that are not meant to end, most accelerators first, then by name.
func services(x *waiting.Question) []Waited {
	var out []Waited
	for _, u := range x.Fleet().Units.All() {
		if u.End.Certainty == contention.Never && u.Accelerators > 0 {
			out = append(out, Waited{Name: string(u.ID), Accelerators: u.Accelerators})
		}
	}
	slices.SortStableFunc(out, func(a, b Waited) int { return cmp.Compare(b.Accelerators, a.Accelerators) })
	return out
}

// optimal reports whether no victims lose less.
func optimal(out waiting.Outcome) bool {
	return !slices.ContainsFunc(out.Preempted, func(of contention.Preempted) bool { return !of.Optimal })
}

// noVictims says why no unit is evicted for a gang.
func (r *run) noVictims(g *gang, x *waiting.Question, unpaid *contention.Balance) string {
	switch {
	case ptr.Deref(slices.Concat(g.waiting, g.running)[0].Spec.PreemptionPolicy, "") == corev1.PreemptNever:
		return "its preemptionPolicy is Never"
	case len(x.Fleet().Units.Preemptible(g.order.Priority)) == 0:
		return "no workload that may be evicted has a lower priority"
	case unpaid != nil && unpaid.More:
		return fmt.Sprintf(
			"an eviction that makes room would lose more than %.1f accelerator-hours of work and restarts, which is all that a start %s sooner would be worth at its priority",
			hours(unpaid.Won),
			time.Duration(unpaid.Sooner)*time.Second,
		)
	case unpaid != nil:
		return fmt.Sprintf(
			"an eviction would lose %.1f accelerator-hours of work and restarts to start it %s sooner, which is worth %.1f at its priority",
			hours(unpaid.Lost),
			time.Duration(unpaid.Sooner)*time.Second,
			hours(unpaid.Won),
		)
	case len(x.Choices[0].Draining()) > 0:
		return "no eviction of workloads of a lower priority makes room for it before what leaves by itself does"
	}
	return "no eviction of workloads of a lower priority makes room for it"
}

// hours converts accelerator-seconds.
func hours(seconds int64) float64 { return float64(seconds) / time.Hour.Seconds() }

// preemption lists the units that leave, and their losses; nil if they leave by themselves.
func (r *run) preemption(x *waiting.Question, ids []contention.ID, cheapest bool) *Preemption {
	out := &Preemption{Cheapest: cheapest}
	var pods []*corev1.Pod
	units := x.Fleet().Units
	for _, u := range x.View.Units(r.groups) {
		loses := units.Get(contention.ID(u.Name))
		if loses == nil || !slices.Contains(ids, loses.ID) {
			continue
		}
		v := Victim{
			Name: u.Name, Priority: u.Priority, Pods: len(u.Pods), Leaving: u.Leaving(),
			Accelerators: loses.Accelerators, Lost: loses.Lost(r.now.Unix()),
		}
		pods, out.Victims = slices.Concat(pods, u.Pods), append(out.Victims, v)
		out.Lost += v.Lost
	}
	if len(out.Victims) == 0 {
		return nil
	}
	out.Exceeded = r.exceeded(pods)
	return out
}

// exceeded returns the budgets that allow fewer disruptions than these pods are.
func (w *WhatIf) exceeded(pods []*corev1.Pod) []string {
	budgets := snapshot.NewBudgets(w.objects.Budgets)
	return budgets.Exceeded(pods)
}

func namesOf(ids []contention.ID) []types.NamespacedName {
	var names []types.NamespacedName
	for _, id := range ids {
		name, _ := waiting.NameOf(id)
		names = append(names, name)
	}
	return names
}

// instant is one of package contention; zero if it is not known.
func instant(at int64) time.Time {
	if at == contention.None || at <= 0 {
		return time.Time{}
	}
	return time.Unix(at, 0).UTC()
}

// where says where a placement is.
func where(view snapshot.View, gang topology.Gang, placement topology.Placement) *Where {
	out := &Where{}
	for rank, node := range placement.Nodes {
		m := gang.Members[rank]
		out.add(view, node, MemberPlace{Rank: rank, Member: m.Name, Late: m.Late, New: !m.Placed})
	}
	out.Within = common(out.Members)
	return out
}

// add adds the place of a member on a node.
func (w *Where) add(view snapshot.View, node int, member MemberPlace) {
	member.Node = view.Tree.Node(node)
	for level := range view.Tree.Levels() {
		if domain, ok := view.Tree.Domain(node, level); ok {
			member.Domains = append(member.Domains, domain)
		}
	}
	w.Members = append(w.Members, member)
}

// common is the innermost domain in which all members are; the zero Domain if only the fleet is.
func common(members []MemberPlace) topology.Domain {
	if len(members) == 0 {
		return topology.Domain{}
	}
	for _, domain := range slices.Backward(members[0].Domains) {
		if !slices.ContainsFunc(members, func(m MemberPlace) bool {
			return !slices.ContainsFunc(m.Domains, func(d topology.Domain) bool { return same(d, domain) })
		}) {
			return domain
		}
	}
	return topology.Domain{}
}

func same(a, b topology.Domain) bool { return a.Level == b.Level && slices.Equal(a.Path, b.Path) }
