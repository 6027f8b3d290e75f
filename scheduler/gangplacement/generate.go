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
	"k8s.io/klog/v2"
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

// question is what one cycle asks.
type question struct {
	group  *schedulingv1beta1.PodGroup
	key    types.NamespacedName
	parent *fwk.Placement
	fleet  fleet
	// waiting are the members to place, running those that have nodes, needed how many of the waiting have to be placed.
	waiting, running []*corev1.Pod
	needed           int
	// told is the number of nodes that the framework is told of.
	told int
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
		waiting: info.GetUnscheduledPods(), running: p.running(group), began: p.clock.Now(),
	}
	q.fleet = p.fleetOf(ctx, q.key)
	q.told = p.memory.nodesAtFirst(q)
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
		p.clearOthers(plan, q)
	}
	p.clearNominations(plan, q.waiting)
	p.memory.remember(q, plan)
	if q.fleet == withoutVictims &&
		dryrun.PlanOf(ctx) == nil { // else the queue leases the place, and calls the gang itself
		p.poke(q, plan)
	}
	state.Write(planKey, plan)
	return &fwk.GeneratePlacementsResult{Placements: plan.placements()}, nil
}

// answer plans the gang, or says why it waits.
func (p *GangPlacement) answer(ctx context.Context, state fwk.PodGroupCycleState, q question) (*plan, *fwk.Status) {
	refused, failed := p.memory.takeRefusals(q, p.clock.Now())
	p.restore(ctx, q.parent)
	x, err := p.read(ctx, q, refused)
	if err != nil {
		return p.cannotAsk(ctx, q, err)
	}
	p.logFamilies(ctx)
	if q.fleet == withoutVictims {
		return p.dryRun(ctx, q, x)
	}
	x.Lags = p.memory.lags(x.View)
	p.gauge(p.clock.Now(), x.Room(), x.Choices[0].Gang)
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
		p.tell(q, refusal{explanation.Refused, fmt.Sprintf(planFailed, len(refused)), ruleFilters}, nil)
	}
	p.observePlacement(ctx, q, x.View, out.Placed.Placement)
	plan := p.newPlan(x, out.Placed.Gang, out.Placed.Placement, q)
	p.memory.coming = plan
	return plan, nil
}

// read reads the gang's question. What happened to pods on nodes does not bar them to a gang that would have no place without them, were all nodes
// empty: it would wait for the end of the quarantine, and not for anybody's room.
func (p *GangPlacement) read(ctx context.Context, q question, refused map[string]string) (*waiting.Question, error) {
	asked := waiting.Asked{
		Group: q.group, Waiting: q.waiting, Running: q.running, Nodes: q.parent.Nodes, Refused: refused,
		Spoken: p.spoken(q), Now: q.began,
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
		p.memory.drop(q)
		return nil, infeasible(q)
	}
	return p.newPlan(x, answer.Gang, answer.Placement, q), nil
}

// waits says why the gang waits, and hands what has to be evicted for it to preemption.
func (p *GangPlacement) waits(
	ctx context.Context, state fwk.PodGroupCycleState, q question, x *waiting.Question, out waiting.Outcome,
) *fwk.Status {
	if out.Deferred && !q.grows() {
		p.explain.Queued(q.group, standing.Turn{Position: p.queue.Position(waiting.IDOf(q.key))})
	}
	if out.Deferred {
		metrics.Shortfalls.WithLabelValues(ruleTurn).Inc()
		p.observe(ctx, q, metrics.ResultWaits, "why", "earlier entities are evaluated first")
		return rejected(q, fwk.UnschedulableAndUnresolvable) // preemption is theirs first, too
	}
	if p.reader.Stock != nil {
		p.reader.Stock.GiveBack(ctx, p.returns, q.group, q.waiting, q.running)
	}
	// What was refused may be possible by the next attempt, and nothing else is.
	p.explainWait(ctx, q, x, out)
	state.Write(waiting.NeedsKey, &waiting.Needs{Question: x, Outcome: out})
	if len(out.Preempted) > 0 || q.mayMove() {
		return rejected(q, fwk.Unschedulable)
	}
	return infeasible(q)
}

// mayMove reports whether the gang lost members that it needs: all of it may start again elsewhere if they have no place near the others.
func (q question) mayMove() bool { return len(q.running) > 0 && q.needed > 0 }

// explainWait says why a gang waits.
func (p *GangPlacement) explainWait(ctx context.Context, q question, x *waiting.Question, out waiting.Outcome) {
	p.memory.drop(q)
	no := p.refusalOf(x, out)
	p.tell(q, no, out.Lease)
	p.observe(ctx, q, metrics.ResultWaits, "why", no.message)
}

// cannotAsk lets a gang wait whose request cannot be read, and says why; anything else is a fault of ours.
func (p *GangPlacement) cannotAsk(ctx context.Context, q question, err error) (*plan, *fwk.Status) {
	if !errors.Is(err, waiting.ErrRequest) {
		p.observe(ctx, q, metrics.ResultError)
		return nil, fwk.AsStatus(err)
	}
	p.tell(q, refusal{explanation.WrongRequest, waiting.Request(err), ruleRequest}, nil)
	if q.fleet == asItIs {
		p.queue.Wrong(q.group)
	}
	p.observe(ctx, q, metrics.ResultWrong)
	return nil, infeasible(q)
}

// running are the members that have nodes in this cycle's snapshot, but for those that are being deleted: a member that starts
// now would start without them.
func (p *GangPlacement) running(group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil // the group has no pods yet
	}
	return slices.DeleteFunc(state.ScheduledPods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// logFamilies logs the label families of the fleet when they change.
func (p *GangPlacement) logFamilies(ctx context.Context) {
	if found := p.reader.Indices.Found(); found != p.memory.found {
		p.memory.found = found
		klog.FromContext(ctx).Info("Detected topology labels", "families", found)
	}
}

// clearNominations drops the nominations of members that are now planned elsewhere: they would hold room twice.
func (p *GangPlacement) clearNominations(plan *plan, waiting []*corev1.Pod) {
	for _, pod := range waiting {
		if pin := plan.pins[pod.Name]; pin == nil || pin.node != pod.Status.NominatedNodeName {
			p.handle.DeleteNominatedPodIfExists(pod)
		}
	}
}

// clearOthers drops the nominations on planned nodes of gangs that wait for victims of the queue: the filters would count them, and
// the queue has found that their leases do not bind this gang.
func (p *GangPlacement) clearOthers(plan *plan, q question) {
	for _, node := range plan.exact.Nodes {
		for _, other := range p.handle.NominatedPodsForNode(node.Node().Name) {
			if group, ok := snapshot.GroupOf(other.GetPod()); ok && group != q.key && !p.memory.preempts(group) {
				p.handle.DeleteNominatedPodIfExists(other.GetPod())
			}
		}
	}
}
