// Package gangpreemption is the scheduler plugin that makes room for a gang by ending what is less important, and that moves one
// which lost members and has no room for them where it is.
//
// In-tree preemption asks where the gang would go in an empty cluster, and then who is in the way there. This one asks the core
// for the victims that lose least, which decides the domain: whole gangs, and nobody before the framework itself has
// verified, on a snapshot without them, that the gang can start in their place.
package gangpreemption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/dryrun"
	"github.com/lockstep-project/lockstep/scheduler/held"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/reservation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/scheduler/victims"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangPreemption"

// GangPreemption preempts for gangs.
type GangPreemption struct {
	handle  fwk.Handle
	desk    *unplaced.Desk
	slots   *held.Slots
	book    *reservation.Book
	stock   *devices.Stock
	clock   clock.PassiveClock
	budgets policylisters.PodDisruptionBudgetLister
	// later does something for each of n until the scheduler ends: evictions go on when the cycle that decided them is over.
	later    func(n int, do func(ctx context.Context, i int))
	underway underway
}

var _ fwk.PodGroupPostFilterPlugin = (*GangPreemption)(nil)

// New returns what makes the plugin, with the desk on which gangs lie for which there is no room, and what is held or kept for
// others.
func New(
	desk *unplaced.Desk, slots *held.Slots, book *reservation.Book, shared *devices.Shared, t timing.Timing,
) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		return &GangPreemption{
			handle: handle, desk: desk, slots: slots, book: book, stock: shared.Stock(handle.SharedDRAManager()),
			clock:   t.Clock,
			budgets: handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister(),
			later: func(n int, do func(context.Context, int)) {
				t.Beside(func() { handle.Parallelizer().Until(ctx, n, func(i int) { do(ctx, i) }, Name) })
			},
		}, nil
	}
}

// Name returns the plugin's name.
func (*GangPreemption) Name() string { return Name }

// PodGroupPostFilter preempts for a gang for which there is no room. One whose plan the framework's filters refused is left to the
// plugins that come after: who is in the way there the core cannot know.
func (p *GangPreemption) PodGroupPostFilter(
	ctx context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	group := info.GetPodGroup()
	if group == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	asked, ok := p.desk.Take(group.UID)
	if !ok {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	result, status := p.preempt(ctx, asked, schedule)
	if status.Code() == fwk.UnschedulableAndUnresolvable && p.move(ctx, asked) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "all of the gang starts again elsewhere")
	}
	return result, status
}

func (p *GangPreemption) preempt(
	ctx context.Context, asked unplaced.Gang, schedule fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	if policy := asked.Waiting[0].Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "its preemptionPolicy is Never")
	}
	began := p.clock.Now()
	found, status := p.find(asked)
	metrics.PreemptionDuration.Observe(p.clock.Since(began).Seconds())
	if !status.IsSuccess() {
		return nil, status
	}
	nominated, status := p.confirm(ctx, found, schedule)
	if !status.IsSuccess() {
		// The filters know better than the core. In-tree preemption asks them about each victim.
		return nil, fwk.NewStatus(
			fwk.Unschedulable,
			"the gang could not start in the place of its victims: "+status.Message(),
		)
	}
	p.tell(ctx, asked, found)
	p.evict(found.Victims, cause{
		reason: corev1.PodReasonPreemptionByScheduler, event: "Preempted", action: "Preempting", by: asked.Group,
		message: "preempted by gang " + klog.KObj(asked.Group).String() + ", which has a higher priority",
	})
	return &fwk.PodGroupPostFilterResult{NominatingInfos: nominated}, nil
}

// find chooses the victims.
func (p *GangPreemption) find(asked unplaced.Gang) (victims.Choice, *fwk.Status) {
	all, err := p.budgets.List(labels.Everything())
	if err != nil {
		return victims.Choice{}, fwk.AsStatus(fmt.Errorf("listing PodDisruptionBudgets: %w", err))
	}
	if !asked.Runs() { // one that runs gets its lost members back whoever waits
		asked = p.outside(asked)
	}
	found, short, err := victims.Choose(asked, p.handle.SnapshotSharedLister().PodGroups(), all, p.clock.Now())
	switch {
	case err != nil:
		return victims.Choice{}, fwk.AsStatus(err)
	case short != nil:
		return victims.Choice{}, fwk.NewStatus(
			fwk.UnschedulableAndUnresolvable,
			"nobody whose departure would help is less important",
		)
	case len(found.Victims) == 0:
		return victims.Choice{}, fwk.NewStatus(fwk.Unschedulable, "there is room by now")
	}
	return found, nil
}

// confirm runs the framework's own cycle for the gang on a snapshot without the victims, and returns where its members would go.
// Nothing of the snapshot is changed for others.
func (p *GangPreemption) confirm(
	ctx context.Context, found victims.Choice, schedule fwk.PodGroupSchedulingFunc,
) (nominated map[types.NamespacedName]*fwk.NominatingInfo, status *fwk.Status) {
	lister := p.handle.MutableSnapshotSharedLister()
	if err := lister.StartMutations(); err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("changing the snapshot: %w", err))
	}
	defer func() {
		if err := lister.EndMutations(); err != nil {
			status = fwk.AsStatus(fmt.Errorf("restoring the snapshot: %w", err))
		}
	}()
	if p.stock != nil {
		defer p.stock.Suppose(found.Victims)()
	}
	for _, u := range found.Victims {
		for _, pod := range u.Pods {
			if err := lister.RemovePod(klog.FromContext(ctx), pod, pod.Spec.NodeName); err != nil {
				return nil, fwk.AsStatus(fmt.Errorf("taking %s off the snapshot: %w", u.Name, err))
			}
		}
	}
	assignments, status := schedule(dryrun.With(ctx))
	if !status.IsSuccess() {
		return nil, status
	}
	nominated = map[types.NamespacedName]*fwk.NominatingInfo{}
	for _, assignment := range assignments.ProposedAssignments {
		if pod := assignment.GetPod(); assignment.GetNodeName() != "" {
			nominated[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = &fwk.NominatingInfo{
				NominatingMode: fwk.ModeOverride, NominatedNodeName: assignment.GetNodeName(),
			}
		}
	}
	return nominated, nil
}

// tell counts and logs what is lost. Whoever is leaving already was counted before.
func (p *GangPreemption) tell(ctx context.Context, asked unplaced.Gang, found victims.Choice) {
	var names []string
	var devices int64
	for _, u := range found.Victims {
		if p.underway.holds(u) {
			continue
		}
		names, devices = append(names, u.Name), devices+u.Accelerators(asked.Accelerators)
		if u.Group != nil {
			metrics.PreemptedGangs.Inc()
		}
	}
	if len(names) == 0 {
		return
	}
	metrics.PreemptedHours.Add(float64(found.Lost) / 3600)
	if own := snapshot.Accelerators(asked.Waiting, asked.Accelerators); own > 0 {
		metrics.Amplification.Observe(float64(devices) / float64(own))
	}
	klog.FromContext(ctx).V(2).Info("Preempts", "gang", asked.Gang.Name, "victims", names,
		"lostAcceleratorSeconds", found.Lost, "accelerators", devices, "optimal", found.Optimal)
}
