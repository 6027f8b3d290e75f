// Package gangplacement is the scheduler plugin that gives every member of a gang its node.
//
// The plan is made once, in GeneratePlacements, by topology.Place; the framework then verifies it pod by pod with its
// own filters, each pod being offered only its planned node. A second, looser placement serves what only those filters
// know (host ports, volumes, inter-pod rules): there the framework chooses the nodes itself.
package gangplacement

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/parking"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangPlacement"

// GangPlacement plans gangs and pins their members.
type GangPlacement struct {
	handle fwk.Handle
	// levels are the configured ones, nil if they are detected.
	levels       []topology.Level
	accelerators []corev1.ResourceName
	// index serves gangs that name a detected level or none; keyed serves the last other label key that was asked for.
	index, keyed *snapshot.Index
	key          string
	// found are the label families that were logged last.
	found string

	explain *explanation.Writer
	lot     *parking.Lot

	mu      sync.Mutex
	refused map[string]*refusals
}

var (
	_ fwk.PlacementGeneratePlugin = (*GangPlacement)(nil)
	_ fwk.PlacementScorePlugin    = (*GangPlacement)(nil)
	_ fwk.PreFilterPlugin         = (*GangPlacement)(nil)
	_ fwk.FilterPlugin            = (*GangPlacement)(nil)
	_ fwk.PreScorePlugin          = (*GangPlacement)(nil)
	_ fwk.ScorePlugin             = (*GangPlacement)(nil)
	_ fwk.ReservePlugin           = (*GangPlacement)(nil)
	_ fwk.EnqueueExtensions       = (*GangPlacement)(nil)
)

// New returns what makes the plugin, with the lot in which gangs wait that do not fit.
func New(lot *parking.Lot) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := config.Placement(object)
		if err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return newPlugin(ctx, args, handle, lot)
	}
}

func newPlugin(
	ctx context.Context, args config.GangPlacementArgs, handle fwk.Handle, lot *parking.Lot,
) (*GangPlacement, error) {
	levels, err := args.Ladder()
	if err != nil {
		return nil, fmt.Errorf("levels: %w", err)
	}
	p := &GangPlacement{
		handle:  handle,
		lot:     lot,
		levels:  levels,
		index:   snapshot.NewIndex(levels, ""),
		refused: make(map[string]*refusals),
		explain: explanation.NewWriter(ctx, handle.ClientSet(), handle.EventRecorder(), clock.RealClock{}),
	}
	for _, name := range args.Accelerators {
		p.accelerators = append(p.accelerators, corev1.ResourceName(name))
	}
	groups := handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Informer()
	if _, err := groups.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.forgetGone}); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	return p, nil
}

// Name returns the plugin's name.
func (*GangPlacement) Name() string { return Name }

// EventsToRegister registers what wakes a gang that waits for the end of its preemption: in-tree DefaultPreemption gates it
// and leaves the waking to the plugin that rejected it. Any other rejected gang is woken by the lot or retried by the
// queue's timer, whatever is registered.
func (*GangPlacement) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	gone := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	return []fwk.ClusterEventWithHint{{Event: gone}}, nil
}

// GeneratePlacements plans a gang on the nodes of the parent placement. Groups that are no gangs are left alone.
func (p *GangPlacement) GeneratePlacements(
	ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, parent *fwk.Placement,
) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	group := info.GetPodGroup()
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{parent}}, nil
	}
	seen := p.lot.Changes()
	waiting, running := info.GetUnscheduledPods(), p.running(group)
	needed := int(group.Spec.SchedulingPolicy.Gang.MinCount) - len(running)
	if len(waiting) == 0 {
		return &fwk.GeneratePlacementsResult{}, nil
	}
	if len(waiting) < needed {
		return nil, infeasible(waiting, len(parent.Nodes)) // some were lost on the way to here
	}
	refused := p.takeRefusals(group, parent.Nodes)
	view, err := p.view(ctx, group, parent.Nodes, waiting)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	gang, err := view.Gang(group, waiting, running, refused)
	if err != nil {
		p.tell(state, group, refusal{explanation.WrongRequest, err.Error()})
		p.lot.Park(group, snapshot.QueuedAt(group), gang.Name, seen) // nobody else asks that
		return nil, infeasible(waiting, len(parent.Nodes))
	}
	gang, placement, no := place(view.Ledger(), gang, needed)
	if no != nil {
		// What was refused may be possible by the next attempt, and nothing else is.
		p.forget(gang.Name)
		p.tell(state, group, *no)
		if len(refused) == 0 {
			p.lot.Park(group, snapshot.QueuedAt(group), parking.Question(gang), seen)
		}
		return nil, infeasible(waiting, len(parent.Nodes))
	}
	p.lot.Release(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	plan := p.newPlan(view, placement, gang, waiting, parent)
	p.clearNominations(plan, waiting)
	p.remember(group, plan)
	state.Write(planKey, plan)
	return &fwk.GeneratePlacementsResult{Placements: plan.placements()}, nil
}

// place plans all waiting members or, if they do not fit, as many first ranks as do and are needed. If that cannot be,
// it says why: a wrong question (a level that no node carries) waits like one without room, since labels come and go. The
// gang returned is what was placed.
func place(l topology.Ledger, gang topology.Gang, needed int) (topology.Gang, topology.Placement, *refusal) {
	running := 0
	for _, m := range gang.Members {
		if m.Placed {
			running++
		}
	}
	if running == 0 {
		gang.Min = min(max(needed, 1), len(gang.Members))
	}
	placement, shortfall, err := topology.Place(l, gang)
	if shortfall != nil && running > 0 && max(needed, 1) < len(gang.Members)-running {
		fewer := gang
		fewer.Members = onlyNeeded(gang.Members, max(needed, 1))
		if without, none, err := topology.Place(l, fewer); none == nil && err == nil {
			return fewer, without, nil
		}
	}
	switch {
	case err != nil:
		return gang, placement, &refusal{explanation.WrongRequest, err.Error()}
	case shortfall != nil:
		return gang, placement, &refusal{explanation.NoRoom, shortfall.String()}
	}
	return gang, placement, nil
}

// refusal is why a gang is not placed.
type refusal struct{ reason, message string }

// tell explains the first refusal of a cycle. Later ones are about a fleet without the victims of a preemption.
func (p *GangPlacement) tell(state fwk.PodGroupCycleState, group *schedulingv1beta1.PodGroup, no refusal) {
	if _, err := state.Read(toldKey); err == nil {
		return
	}
	state.Write(toldKey, &plan{})
	p.explain.Waits(group, no.reason, no.message)
}

// onlyNeeded keeps the members that run and the first n of the others.
func onlyNeeded(members []topology.Member, n int) []topology.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m topology.Member) bool {
		if !m.Placed {
			n--
		}
		return !m.Placed && n < 0
	})
}

// running are the members that have nodes in this cycle's snapshot.
func (p *GangPlacement) running(group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil // the group has no pods yet
	}
	return state.ScheduledPods()
}

// view brings the right index up to date: a required key that is no detected level gets one of its own.
func (p *GangPlacement) view(
	ctx context.Context, group *schedulingv1beta1.PodGroup, nodes []fwk.NodeInfo, waiting []*corev1.Pod,
) (snapshot.View, error) {
	resources := snapshot.Resources(waiting)
	required := snapshot.Required(group)
	if required != "" && required == p.key {
		return p.keyed.Update(nodes, resources)
	}
	view, err := p.index.Update(nodes, resources)
	if err != nil {
		return view, err
	}
	if found := view.Found(); found != p.found {
		p.found = found
		klog.FromContext(ctx).Info("Detected topology labels", "families", found)
	}
	if _, ok := view.Tree.Level(required); ok || required == "" || !snapshot.Carries(nodes, required) {
		return view, nil
	}
	p.key, p.keyed = required, snapshot.NewIndex(p.levels, required)
	return p.keyed.Update(nodes, resources)
}

// clearNominations drops the nominations of members that are now planned elsewhere: they would hold room twice.
func (p *GangPlacement) clearNominations(plan *plan, waiting []*corev1.Pod) {
	for _, pod := range waiting {
		if pin := plan.pins[pod.Name]; pin == nil || pin.node != pod.Status.NominatedNodeName {
			p.handle.DeleteNominatedPodIfExists(pod)
		}
	}
}

// ScorePlacement prefers the planned placement: it is the one that was optimized.
func (*GangPlacement) ScorePlacement(
	_ context.Context, state fwk.PlacementCycleState, _ fwk.PodGroupInfo, assignments *fwk.PodGroupAssignments,
) (int64, *fwk.Status) {
	plan := planOf(state.GetPodGroupSchedulingCycle())
	if plan != nil && assignments.Placement == plan.loose {
		return 0, nil
	}
	return fwk.MaxScore, nil
}

// PlacementScoreExtensions returns nil: scores are final.
func (*GangPlacement) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }
