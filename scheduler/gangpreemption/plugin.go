// Package gangpreemption is the scheduler plugin that makes room for a gang, or for a pod in none, by evicting units of
// lower priority, and that moves a gang which lost members and has no room for them in its domain.
//
// In-tree preemption places the gang in an empty cluster, and then evicts the pods that are in the way there. The queue
// (package waiting) chooses the victims that lose least, which decides the domain. This plugin has the framework
// verify, on a snapshot without them, that the gang can start in their place, and evicts them.
package gangpreemption

import (
	"context"
	"maps"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/dryrun"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangPreemption"

// GangPreemption preempts for gangs, and for pods in none.
type GangPreemption struct {
	handle fwk.Handle
	queue  *waiting.Queue
	stock  *devices.Stock
	// later does something for each of n until the scheduler ends: evictions continue when the cycle that decided them
	// is over.
	later    func(n int, do func(ctx context.Context, i int))
	clock    clock.Clock
	underway *underway
	// nominated are the nodes of gangs whose victims have yet to leave. Only the scheduling loop uses them.
	nominated map[types.NamespacedName]nominations
}

// nominations are the nodes of a gang's members when its victims have left.
type nominations = map[types.NamespacedName]*fwk.NominatingInfo

var (
	_ fwk.PodGroupPostFilterPlugin = (*GangPreemption)(nil)
	_ fwk.PostFilterPlugin         = (*GangPreemption)(nil)
)

// New returns the plugin's factory.
func New(
	queue *waiting.Queue, shared *devices.Shared, t timing.Timing,
) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		return &GangPreemption{
			handle: handle, queue: queue, stock: shared.Stock(handle.SharedDRAManager()),
			underway: &underway{clock: t.Clock}, clock: t.Clock,
			nominated: make(map[types.NamespacedName]nominations),
			later: func(n int, do func(context.Context, int)) {
				t.Beside(func() { handle.Parallelizer().Until(ctx, n, func(i int) { do(ctx, i) }, Name) })
			},
		}, nil
	}
}

// Name returns the plugin's name.
func (*GangPreemption) Name() string { return Name }

// PodGroupPostFilter carries out the evictions that a waiting gang needs. A gang whose plan the framework's filters
// refused is left to the plugins that follow: the queue cannot know the obstacles there.
func (p *GangPreemption) PodGroupPostFilter(
	ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	needs := waiting.NeedsOf(state)
	if needs == nil || needs.Outcome.Wait.Cause != contention.Victims {
		delete(p.nominated, keyOf(info.GetPodGroup()))
	}
	if info.GetPodGroup() == nil || needs == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if needs.Outcome.Wait.Cause == contention.Victims {
		return p.preempt(ctx, needs, schedule)
	}
	for _, of := range needs.Outcome.Preempted { // they use a place until its instant
		p.leave(ctx, needs, of, p.units(needs.Question, of.Victims))
	}
	if p.move(ctx, needs.Question) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "all of the gang starts again elsewhere")
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no eviction of less important workloads makes room")
}

// preempt has the victims of a gang leave, if the framework confirms that the gang can start in their place then.
func (p *GangPreemption) preempt(
	ctx context.Context, needs *waiting.Needs, schedule fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	x := needs.Question
	key := keyOf(x.Group)
	plan := dryrun.Plan{Gang: contention.Ask{Gang: x.Choices[0].Gang, Needed: x.Needed()}.Fewest()}
	at := slices.IndexFunc(
		needs.Outcome.Preempted,
		func(of contention.Preempted) bool { return len(of.Placement.Nodes) > 0 },
	)
	if at < 0 && p.nominated[key] != nil {
		return &fwk.PodGroupPostFilterResult{NominatingInfos: p.nominated[key]}, nil
	}
	delete(p.nominated, key)
	if at < 0 {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the victims have yet to leave")
	}
	of := needs.Outcome.Preempted[at]
	plan.Placement = of.Placement
	victims := p.units(x, needs.Outcome.Wait.Of) // before the view shows the fleet without them
	nominated, status := p.confirm(ctx, victims, plan, schedule)
	if !status.IsSuccess() {
		// The filters know better than the queue. In-tree preemption asks them about each victim.
		p.queue.RefusePreemption(waiting.IDOf(key))
		return nil, fwk.NewStatus(
			fwk.Unschedulable, "the gang could not start in the place of its victims: "+status.Message())
	}
	p.leave(ctx, needs, of, slices.DeleteFunc(victims, func(u snapshot.Unit) bool {
		return !slices.Contains(of.Victims, contention.ID(u.Name))
	}))
	p.forgetGone()
	p.nominated[key] = nominated
	return &fwk.PodGroupPostFilterResult{NominatingInfos: nominated}, nil
}

// forgetGone drops the nodes of gangs that are gone: one that starts is not seen here again.
func (p *GangPreemption) forgetGone() {
	groups := p.handle.PodGroupManager().PodGroups()
	maps.DeleteFunc(p.nominated, func(of types.NamespacedName, _ nominations) bool {
		_, err := groups.Get(of.Namespace, of.Name)
		return apierrors.IsNotFound(err)
	})
}

func keyOf(group *schedulingv1beta1.PodGroup) types.NamespacedName {
	if group == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
}

// leave evicts the victims.
func (p *GangPreemption) leave(
	ctx context.Context, needs *waiting.Needs, of contention.Preempted, victims []snapshot.Unit,
) {
	x := needs.Question
	p.recordVictims(ctx, x, of, victims)
	p.queue.Evicting(of.Victims)
	p.evict(victims, preempted(x))
}

// units are the units of these names, with the accelerators of their claims.
func (p *GangPreemption) units(x *waiting.Question, ids []contention.ID) []snapshot.Unit {
	var out []snapshot.Unit
	all := x.View.Units(p.handle.SnapshotSharedLister().PodGroups())
	for _, u := range slices.Concat(all, x.Choices[0].Draining()) {
		if slices.Contains(ids, contention.ID(u.Name)) {
			if p.stock != nil {
				u.Devices = p.stock.Held(u)
			}
			out = append(out, u)
		}
	}
	return out
}

// recordVictims counts and logs the losses. Units that leave already were counted before.
func (p *GangPreemption) recordVictims(
	ctx context.Context, x *waiting.Question, of contention.Preempted, victims []snapshot.Unit,
) {
	var names []string
	var devices int64
	for _, u := range victims {
		if p.underway.holds(u) {
			continue
		}
		names, devices = append(names, u.Name), devices+u.Accelerators(x.Kinds)
		if u.Group != nil && u.Of == "" {
			metrics.PreemptedGangs.Inc()
		}
	}
	if len(names) == 0 {
		return
	}
	metrics.PreemptedHours.Add(float64(of.Cost) / 3600)
	if x.Accelerators > 0 {
		metrics.Amplification.Observe(float64(devices) / float64(x.Accelerators))
	}
	klog.FromContext(ctx).V(2).Info("Preempting victims", "for", x.Choices[0].Gang.Name, "victims", names,
		"lostAcceleratorSeconds", of.Cost, "accelerators", devices, "optimal", of.Optimal,
		"soonerSeconds", of.Balance.Sooner, "won", of.Balance.Won, "lost", of.Balance.Lost)
}
