package gangplacement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/dryrun"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// question is the question of one cycle.
type question struct {
	group  *schedulingv1beta1.PodGroup
	key    types.NamespacedName
	parent *fwk.Placement
	fleet  fleet
	// waiting are the members to place, running those that have nodes, needed the number of the waiting that have to be
	// placed.
	waiting, running []*corev1.Pod
	needed           int
	// reported is the number of nodes that is shown to the framework.
	reported int
	// began is the time when the question was asked.
	began time.Time
}

// grows reports whether the gang runs with all members that it needs, and would take more.
func (q question) grows() bool { return q.needed <= 0 && snapshot.IsElastic(q.group) }

// GeneratePlacements plans a gang on the nodes of the parent placement. Groups that are no gangs are left alone.
func (p *GangPlacement) GeneratePlacements(
	ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, parent *fwk.Placement,
) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	group := info.GetPodGroup()
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{parent}}, nil
	}
	q := question{
		group: group, key: types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, parent: parent,
		waiting: info.GetUnscheduledPods(), running: runningMembers(p.handle.SnapshotSharedLister(), group),
		began: p.clock.Now(), fleet: fleetOf(ctx),
	}
	if q.fleet == asItIs {
		p.preemption.end(q.key)
	}
	q.reported = p.history.nodesAtFirst(q)
	q.needed = int(group.Spec.SchedulingPolicy.Gang.MinCount) - len(q.running)
	if len(q.waiting) == 0 {
		return &fwk.GeneratePlacementsResult{}, nil
	}
	if len(q.waiting) < q.needed { // it lost some on the way to here, cannot be evaluated, and must hold up no other
		if q.fleet == asItIs {
			p.queue.Remove(waiting.IDOf(q.key))
		}
		return nil, rejected(q, fwk.UnschedulableAndUnresolvable)
	}
	if q.fleet == asItIs {
		order := p.queue.OrderOf(group, q.waiting[0])
		order.Grows = q.grows()
		p.considerOthers(ctx, q, &order)
	}
	plan, status := p.answer(ctx, state, q)
	if plan == nil {
		return nil, status
	}
	if q.fleet == asItIs || dryrun.PlanOf(ctx) != nil {
		p.nominations.clearOthers(plan, q)
	}
	p.nominations.clear(plan, q.waiting)
	p.history.remember(q, plan)
	p.suspicion.planned(q, plan)
	if q.fleet == withoutVictims &&
		dryrun.PlanOf(ctx) == nil { // else the queue leases the place, and calls the gang itself
		p.preemption.scheduleRewake(q.key, plan)
	}
	state.Write(planKey, plan)
	return &fwk.GeneratePlacementsResult{Placements: plan.placements()}, nil
}

// answer plans the gang, or says why it waits.
func (p *GangPlacement) answer(ctx context.Context, state fwk.PodGroupCycleState, q question) (*plan, *fwk.Status) {
	refused, failed := p.barred(q, p.clock.Now())
	p.restorer.restore(ctx)
	x, err := p.read(ctx, q, refused)
	if err != nil {
		return p.cannotAsk(ctx, q, err)
	}
	p.metrics.logFamilies(ctx)
	if q.fleet == withoutVictims {
		return p.dryRun(ctx, q, x)
	}
	x.Lags = p.versions.lags(x.View)
	p.metrics.measureFleet(x.Room(), x.Choices[0].Gang)
	if len(q.running) == 0 {
		p.queue.EndHold(waiting.IDOf(q.key), contention.LateMember)
	}
	out := p.queue.Turn(x)
	if out.Placed == nil {
		status := p.waits(ctx, state, q, x, out)
		if !out.Deferred && len(out.Preempted) == 0 && !q.mayMove() { // else the fleet changes first
			p.considerOthers(ctx, q, nil)
		}
		return nil, status
	}
	if failed {
		p.recordRefusal(q, refusal{explanation.Refused, fmt.Sprintf(planFailed, len(refused)), ruleFilters}, nil)
	}
	p.metrics.observePlacement(ctx, q, x.View, out.Placed.Placement)
	plan := p.newPlan(x, out.Placed.Gang, out.Placed.Placement, q)
	p.coming = plan
	return plan, nil
}

// barred returns the nodes that the gang may not use, each with its rule, for its failed plans and for the failures and
// refusals of pods there. It reports whether the gang's last plan failed.
func (p *GangPlacement) barred(q question, now time.Time) (barred map[string]string, failed bool) {
	barred, failed = p.history.takeRefusals(q)
	return p.suspicion.bar(barred, q, now), failed
}

// read reads the gang's question. Failures and refusals of pods on nodes do not bar these to a gang that would have no
// place without them, were all nodes empty: it would wait for the end of the quarantine, and not for room.
func (p *GangPlacement) read(ctx context.Context, q question, refused map[string]string) (*waiting.Question, error) {
	asked := waiting.Asked{
		Group: q.group, Waiting: q.waiting, Running: q.running, Nodes: q.parent.Nodes, Refused: refused,
		Spoken: p.nominations.reserved(q), Now: q.began,
	}
	x, err := p.reader.Read(ctx, asked)
	if err != nil || len(q.running) > 0 || !slices.ContainsFunc(slices.Collect(maps.Values(refused)), forHealth) {
		return x, err
	}
	empty := x.Choices[0].Ledger
	empty.Free = empty.Total
	if _, short, err := topology.Place(empty, x.Choices[0].Gang); short == nil && err == nil {
		return x, nil
	}
	maps.DeleteFunc(refused, func(_, rule string) bool { return forHealth(rule) })
	return p.reader.Read(ctx, asked)
}

// dryRun confirms a plan, or plans the gang on a fleet without victims. It decides nothing.
func (p *GangPlacement) dryRun(ctx context.Context, q question, x *waiting.Question) (*plan, *fwk.Status) {
	if given := dryrun.PlanOf(ctx); given != nil {
		return p.newPlan(x, given.Gang, given.Placement, q), nil
	}
	answer := p.queue.Trial(x)
	if answer.Refusal != nil {
		p.history.drop(q)
		return nil, infeasible(q)
	}
	return p.newPlan(x, answer.Gang, answer.Placement, q), nil
}

// waits says why the gang waits, and hands the units that have to be evicted for it to preemption.
func (p *GangPlacement) waits(
	ctx context.Context, state fwk.PodGroupCycleState, q question, x *waiting.Question, out waiting.Outcome,
) *fwk.Status {
	if out.Deferred && !q.grows() {
		p.explain.Queued(q.group, standing.Turn{Position: p.queue.Position(waiting.IDOf(q.key))})
	}
	if out.Deferred {
		p.metrics.countShortfall(ruleTurn)
		p.metrics.observe(ctx, q, metrics.ResultWaits, "reason", "earlier entities are evaluated first")
		return rejected(q, fwk.UnschedulableAndUnresolvable) // preemption is theirs first, too
	}
	if p.givesBack(ctx, q) || x.Choices[0].Returns() {
		return p.returnsDevices(ctx, q, out)
	}
	// A refused placement may be possible by the next attempt; no other one is.
	p.explainWait(ctx, q, x, out)
	state.Write(waiting.NeedsKey, &waiting.Needs{Question: x, Outcome: out})
	if len(out.Preempted) > 0 || q.mayMove() {
		return rejected(q, fwk.Unschedulable)
	}
	return infeasible(q)
}

// givesBack has the members give back the devices of a torn start, and reports whether there are any.
func (p *GangPlacement) givesBack(ctx context.Context, q question) bool {
	return p.reader.Stock != nil && p.reader.Stock.GiveBack(ctx, p.returns, q.group, q.waiting, q.running)
}

// returnsDevices lets a gang wait until its members have given back the devices of a torn start. Where these are
// decides nothing: each member may be bound to a node of its own, which is out of room or makes more kinds of members
// than a plan takes. So no unit is evicted for the gang, and it stays where it runs.
func (p *GangPlacement) returnsDevices(ctx context.Context, q question, out waiting.Outcome) *fwk.Status {
	p.history.drop(q)
	if len(out.Preempted) > 0 {
		p.queue.RefusePreemption(waiting.IDOf(q.key))
	}
	no := refusal{explanation.NoRoom, "its members give back the devices of a start that was interrupted", ruleDevices}
	p.recordRefusal(q, no, nil)
	p.metrics.observe(ctx, q, metrics.ResultWaits, "reason", no.message)
	return rejected(q, fwk.UnschedulableAndUnresolvable)
}

// mayMove reports whether the gang lost members that it needs: all of it may start again elsewhere if they have no
// place near the others.
func (q question) mayMove() bool { return len(q.running) > 0 && q.needed > 0 }

// explainWait says why a gang waits.
func (p *GangPlacement) explainWait(ctx context.Context, q question, x *waiting.Question, out waiting.Outcome) {
	p.history.drop(q)
	no := refusalOf(x, out)
	p.recordRefusal(q, no, out.Lease)
	p.metrics.observe(ctx, q, metrics.ResultWaits, "reason", no.message)
}

// cannotAsk lets a gang wait whose request cannot be read, and says why; anything else is a fault of ours.
func (p *GangPlacement) cannotAsk(ctx context.Context, q question, err error) (*plan, *fwk.Status) {
	if !errors.Is(err, waiting.ErrRequest) {
		p.metrics.observe(ctx, q, metrics.ResultError)
		return nil, fwk.AsStatus(err)
	}
	p.recordRefusal(q, refusal{explanation.WrongRequest, waiting.Request(err), ruleRequest}, nil)
	if q.fleet == asItIs {
		p.queue.Wrong(q.group)
	}
	p.metrics.observe(ctx, q, metrics.ResultWrong)
	return nil, infeasible(q)
}
