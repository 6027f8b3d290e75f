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
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/held"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/parking"
	"github.com/lockstep-project/lockstep/scheduler/reservation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/topology"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangPlacement"

// GangPlacement plans gangs and pins their members.
type GangPlacement struct {
	handle       fwk.Handle
	accelerators []corev1.ResourceName
	indices      *snapshot.Indices
	// found are the label families that were logged last.
	found string

	explain *explanation.Writer
	lot     *parking.Lot
	slots   *held.Slots
	desk    *unplaced.Desk
	book    *reservation.Book
	clock   clock.WithDelayedExecution
	stock   *devices.Stock
	// restored is set once the slots of gangs that run already are held again, last is what the gauges say.
	restored bool
	last     reading

	mu      sync.Mutex
	refused map[string]*refusals
	// leaving are the nodes of pods that left, as far as the snapshot did not show it yet.
	leaving map[types.UID]string
	// suspects are the nodes whose kubelets refused a pod.
	suspects map[string]suspicion
	// marked are the nodes under maintenance.
	marked marks
	// kinds are the nodes with and without accelerators.
	kinds kinds
	// preempting are the gangs for which preemption found a way and that were not asked since.
	preempting map[types.NamespacedName]*preemption
	// counted is how many nodes there were when each gang was asked about first.
	counted map[types.NamespacedName]count
	// coming are the slots of the last plans, to be held when the gang starts.
	coming map[types.NamespacedName][]held.Slot
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

// Shared is what the plugins of one scheduler know together: the lot in which gangs wait that do not fit, the room that is
// held, the desk on which preemption finds its question, and the book in which the first of the queue has its place.
type Shared struct {
	Lot   *parking.Lot
	Slots *held.Slots
	Desk  *unplaced.Desk
	Book  *reservation.Book
	// Devices is where the stock of devices is.
	Devices *devices.Shared
	Timing  timing.Timing
}

// New returns what makes the plugin.
func New(shared Shared) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := config.Placement(object)
		if err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return newPlugin(ctx, args, handle, shared)
	}
}

func newPlugin(
	ctx context.Context, args config.GangPlacementArgs, handle fwk.Handle, shared Shared,
) (*GangPlacement, error) {
	metrics.Register()
	levels, err := args.Ladder()
	if err != nil {
		return nil, fmt.Errorf("levels: %w", err)
	}
	p := &GangPlacement{
		handle:     handle,
		lot:        shared.Lot,
		slots:      shared.Slots,
		desk:       shared.Desk,
		book:       shared.Book,
		clock:      shared.Timing.Clock,
		coming:     make(map[types.NamespacedName][]held.Slot),
		counted:    make(map[types.NamespacedName]count),
		indices:    snapshot.NewIndices(levels),
		refused:    make(map[string]*refusals),
		suspects:   make(map[string]suspicion),
		marked:     make(marks),
		kinds:      newKinds(),
		leaving:    make(map[types.UID]string),
		preempting: make(map[types.NamespacedName]*preemption),
		explain:    explanation.NewWriter(ctx, handle.ClientSet(), handle.EventRecorder(), shared.Timing),
	}
	for _, name := range args.Accelerators {
		p.accelerators = append(p.accelerators, corev1.ResourceName(name))
	}
	if err := p.followDevices(handle, shared.Devices); err != nil {
		return nil, err
	}
	groups := handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Informer()
	if _, err := groups.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.forgetGone}); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	nodes := handle.SharedInformerFactory().Core().V1().Nodes().Informer()
	if _, err := nodes.AddEventHandler(p.followNodes()); err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: p.podChanged, DeleteFunc: p.podLeft,
	}); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
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
	marked := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAnnotation}
	return []fwk.ClusterEventWithHint{{Event: gone}, {Event: marked, QueueingHintFn: reopened}}, nil
}

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
	if q.fleet = p.fleetOf(ctx, q.key); q.fleet == asItIs {
		p.desk.Clear()
	}
	q.seen = p.lot.Changes() // after what the question itself changes
	q.told = p.nodesAtFirst(q)
	q.needed = int(group.Spec.SchedulingPolicy.Gang.MinCount) - len(q.running)
	if len(q.waiting) == 0 {
		return &fwk.GeneratePlacementsResult{}, nil
	}
	if len(q.waiting) < q.needed {
		return nil, infeasible(q) // some were lost on the way to here
	}
	if len(q.running) == 0 {
		p.slots.Release(q.key) // what was held for an earlier start
	}
	plan, status := p.answer(ctx, q)
	if plan == nil {
		return nil, status
	}
	if q.fleet == asItIs { // one whose victims are still to go waits where the others do, and is called with them
		p.lot.Release(q.key)
		p.displace(q, plan)
		p.starts(q)
	}
	p.clearNominations(plan, q.waiting)
	p.remember(q, plan)
	if q.fleet == withoutVictims {
		p.poke(q, plan)
	}
	p.expect(q.key, plan.slots)
	state.Write(planKey, plan)
	return &fwk.GeneratePlacementsResult{Placements: plan.placements()}, nil
}

// question is what one cycle is asked.
type question struct {
	group  *schedulingv1beta1.PodGroup
	key    types.NamespacedName
	parent *fwk.Placement
	fleet  fleet
	// waiting are the members to place, running those that have nodes, needed how many of the waiting have to be placed.
	waiting, running []*corev1.Pod
	needed           int
	// holds adds to units what devices they would give back to the gang; nil adds nothing.
	holds func([]snapshot.Unit) []snapshot.Unit
	// told is the number of nodes that the framework is told of.
	told int
	// seen is the state of the parking lot when the question was asked, began the time.
	seen  uint64
	began time.Time
}

// answer plans the gang, or says why it waits and sees to it that it is not asked again for nothing.
func (p *GangPlacement) answer(ctx context.Context, q question) (*plan, *fwk.Status) {
	refused, failed := p.takeRefusals(q)
	p.restore(ctx, q.parent)
	view, err := p.view(ctx, q)
	if err != nil {
		p.observe(ctx, q, metrics.ResultError)
		return nil, fwk.AsStatus(err)
	}
	lags := q.fleet == asItIs && p.lags(view)
	gang, err := view.Gang(q.group, q.waiting, q.running, refused)
	if err != nil {
		p.tell(q, refusal{explanation.WrongRequest, err.Error(), ruleRequest})
		p.lot.Park(q.group, snapshot.QueuedAt(q.group), gang.Name, q.seen) // nobody else asks that
		p.observe(ctx, q, metrics.ResultWrong)
		return nil, infeasible(q)
	}
	ledger := view.Ledger(p.spoken(q, view))
	if q.fleet == asItIs {
		p.gauge(ledger, gang)
	}
	if p.overtakes(q, gang) {
		p.observe(ctx, q, metrics.ResultWaits, "why", "others are before it")
		return nil, rejected(q, fwk.UnschedulableAndUnresolvable) // preemption is theirs first, too
	}
	asked, err := p.withDevices(ctx, q, view, ledger, gang)
	if err != nil {
		return p.cannotAsk(ctx, q, gang, err)
	}
	q.holds = asked.holds
	answer, ledger := p.placeAnywhere(ctx, q, view, asked.questions)
	gang = answer.Gang
	if answer.Refusal != nil {
		// What was refused may be possible by the next attempt, and nothing else is.
		p.drop(q)
		no := refusalOf(*answer.Refusal)
		if q.fleet == asItIs && no.reason == explanation.NoRoom {
			no.message += asked.questions[0].Note() + p.wanting(q, view, ledger, gang)
		}
		p.tell(q, no)
		if len(refused) == 0 {
			p.park(q, gang)
		}
		if lags {
			p.lot.Again()
		}
		p.observe(ctx, q, metrics.ResultWaits, "why", no.message)
		return nil, infeasible(q)
	}
	if failed {
		p.tell(q, refusal{explanation.Refused, fmt.Sprintf(planFailed, len(refused)), ruleFilters})
	}
	if q.fleet == asItIs {
		p.observePlacement(ctx, q, view, answer.Placement)
	}
	return p.newPlan(view, answer.Placement, gang, q), nil
}

// wanting is for a gang without room: it keeps a place for it if it is the first, and lets preemption know of it. It returns what
// is to be added to why it waits.
func (p *GangPlacement) wanting(q question, view snapshot.View, ledger topology.Ledger, gang topology.Gang) string {
	p.desk.Put(unplaced.Gang{
		Group: q.group, Waiting: q.waiting, View: view, Ledger: ledger, Gang: gang, Accelerators: p.accelerators,
		Holds: q.holds,
	})
	return p.reserve(q, view, ledger, gang)
}

// running are the members that have nodes in this cycle's snapshot, but for those that are being deleted: whoever starts
// now would start without them.
func (p *GangPlacement) running(group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil // the group has no pods yet
	}
	return slices.DeleteFunc(state.ScheduledPods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// view brings the right index up to date: a required key that is no detected level gets one of its own.
func (p *GangPlacement) view(ctx context.Context, q question) (snapshot.View, error) {
	late, _ := snapshot.Late(q.group, q.waiting, q.running) // what is wrong with it is said when the gang is read
	resources, nodes := snapshot.Resources(slices.Concat(q.waiting, late)), q.parent.Nodes
	view, err := p.indices.View(nodes, resources, snapshot.Required(q.group))
	if err != nil {
		return view, fmt.Errorf("planning on %d nodes: %w", len(nodes), err)
	}
	if found := p.indices.Found(); found != p.found {
		p.found = found
		klog.FromContext(ctx).Info("Detected topology labels", "families", found)
	}
	return view, nil
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
