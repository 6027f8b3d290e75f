// Package gangplacement is the scheduler plugin that gives every member of a gang its node.
//
// The plan is made once, in GeneratePlacements, by the queue (package waiting); the framework then verifies it pod by
// pod with its own filters, each pod being offered only its planned node. A second, looser placement serves rules that
// only those filters know (host ports, volumes, inter-pod rules): there the framework chooses the nodes itself.
package gangplacement

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangPlacement"

// GangPlacement plans gangs and pins their members. It has the extension points of the framework and the path of a
// decision; each of its parts has one duty, with its own state.
//
// The scheduling loop calls the extension points, but for Filter and Score, which it calls in several goroutines at a
// time, and Unreserve, which binding goroutines call too: these three change no state of the plugin. Event handlers and
// timers run beside the loop. A part that they use has a lock; no part calls another one, or the queue, while it holds
// its lock.
type GangPlacement struct {
	handle  fwk.Handle
	queue   *waiting.Queue
	reader  *waiting.Reader
	explain *explanation.Writer
	clock   clock.WithDelayedExecution
	returns devices.Returns

	// history has the failed plans of the gangs that wait.
	history *planHistory
	// suspicion bars nodes for the failures and refusals of pods there.
	suspicion *nodeSuspicion
	// preemption follows the gangs whose victims leave.
	preemption *preemptionWatch
	// nominations reads and drops the nominations of waiting pods.
	nominations nominations
	// restorer leases the places of gangs that ran before the scheduler's start.
	restorer *leaseRestorer
	// sampler sets the part of the nodes that is searched.
	sampler *nodeSampler
	// closed follows the nodes that are closed to new pods.
	closed *closedNodes
	// versions detects snapshots that lag behind.
	versions *nodeVersions
	// metrics counts and logs decisions.
	metrics *decisionMetrics

	// coming is the plan of the gang that starts next. Only the scheduling loop uses it.
	coming *plan
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

// Shared is the state that the plugins of one scheduler share.
type Shared struct {
	Queue *waiting.Queue
	// Devices gives access to the stock of devices.
	Devices *devices.Shared
	Timing  timing.Timing
	// Explain gives the writers of explanations.
	Explain *explanation.Writers
	// Store persists leases and learned run times for a fail-over. Nil in a scheduler that has no successor.
	Store *Store
	// Ended reports pods that end; nil if the scheduler's own informer does.
	Ended *members.Ended
}

// Store persists the scheduler's state in ConfigMaps, for the next leader.
type Store struct {
	once    sync.Once
	keepers []*statemap.Keeper
}

// runTimesName is the name of the ConfigMap with the run times of earlier workloads, in the namespace of that of the
// leases.
const runTimesName = "lockstep-scheduler-run-times"

// Load restores the state of the last scheduler, once.
func (s *Store) Load(ctx context.Context) {
	for _, keeper := range s.keepers {
		keeper.Load(ctx)
	}
}

// begin adds the keepers of the first plugin that starts, which write until the context ends. A nil store stays nil.
func (s *Store) begin(ctx context.Context, args config.GangPlacementArgs, handle fwk.Handle, shared Shared) *Store {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		at := statemap.Map{Client: handle.ClientSet(), Namespace: args.Leases.Namespace, Name: args.Leases.Name}
		s.keepers = append(s.keepers, waiting.NewKeeper(at, shared.Queue, shared.Timing))
		if args.LearnRunTimes {
			at.Name = runTimesName
			s.keepers = append(s.keepers, runtimes.NewKeeper(at, shared.Queue.Learn(), shared.Timing))
		}
		for _, keeper := range s.keepers {
			keeper.Run(ctx)
		}
	})
	return s
}

// New returns the plugin's factory.
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
	reader, err := newReader(args, handle, shared)
	if err != nil {
		return nil, err
	}
	shared.Queue.Reads(reader)
	shared.Queue.SetTerms(args.Terms())
	shared.Queue.SetDiscipline(handle.ProfileName(), args.Discipline())
	timer := shared.Timing.Clock
	preemption := newPreemptionWatch(timer, shared.Queue, handle)
	p := &GangPlacement{
		handle:  handle,
		queue:   shared.Queue,
		reader:  reader,
		explain: shared.Explain.Of(ctx, handle),
		clock:   timer,
		returns: devices.Returns{
			Client: handle.ClientSet(), Clock: timer, Changed: shared.Queue.Settling,
			Beside: func(do func(context.Context)) { shared.Timing.Beside(func() { do(ctx) }) },
		},
		history:     newPlanHistory(),
		suspicion:   newNodeSuspicion(timer, handle.PodGroupManager(), args.Strikes(), shared.Queue.Changed),
		preemption:  preemption,
		nominations: nominations{handle, preemption},
		restorer: &leaseRestorer{
			handle: handle, queue: shared.Queue, reader: reader, clock: timer,
			store: shared.Store.begin(ctx, args, handle, shared),
		},
		sampler:  newNodeSampler(handle, reader.Accelerators),
		closed:   newClosedNodes(args.Health()),
		versions: newNodeVersions(),
		metrics:  &decisionMetrics{clock: timer, indices: reader.Indices},
	}
	if err := p.follow(ctx, shared); err != nil {
		return nil, err
	}
	return p, nil
}

// follow registers the plugin's event handlers.
func (p *GangPlacement) follow(ctx context.Context, shared Shared) error {
	informers := p.handle.SharedInformerFactory()
	for _, watch := range []struct {
		kind     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{
			"PodGroups", informers.Scheduling().V1beta1().PodGroups().Informer(),
			cache.ResourceEventHandlerFuncs{DeleteFunc: p.groupDeleted},
		},
		{"nodes", informers.Core().V1().Nodes().Informer(), p.followNodes()},
		{
			"pods", informers.Core().V1().Pods().Informer(),
			cache.ResourceEventHandlerFuncs{UpdateFunc: p.suspicion.podChanged, DeleteFunc: p.suspicion.podGone},
		},
	} {
		if _, err := watch.informer.AddEventHandler(watch.handler); err != nil {
			return fmt.Errorf("watching %s: %w", watch.kind, err)
		}
	}
	if err := shared.Ended.FollowAll(ctx, p.handle, p.suspicion.podEnded, p.suspicion.hadEnded); err != nil {
		return err
	}
	if p.reader.Stock == nil {
		return nil
	}
	return followDevices(informers, p.queue, p.reader.Stock)
}

func newReader(args config.GangPlacementArgs, handle fwk.Handle, shared Shared) (*waiting.Reader, error) {
	levels, err := args.Ladder()
	if err != nil {
		return nil, fmt.Errorf("levels: %w", err)
	}
	informers := handle.SharedInformerFactory()
	budgets := informers.Policy().V1().PodDisruptionBudgets().Lister()
	classes := informers.Scheduling().V1().PriorityClasses().Lister()
	r := &waiting.Reader{
		Indices: snapshot.NewIndices(levels, args.Health()), Stock: shared.Devices.Stock(handle.SharedDRAManager()),
		Budgets: func() []*policyv1.PodDisruptionBudget {
			all, _ := budgets.List(labels.Everything()) // a lister of a cache never fails
			return all
		},
		Protected: func(name string) bool {
			class, err := classes.Get(name)
			return err == nil && snapshot.Protects(class)
		},
		Groups:  func() fwk.PodGroupLister { return handle.SnapshotSharedLister().PodGroups() },
		Version: shared.Queue.Version, Lives: consumers(informers),
	}
	if args.LearnRunTimes {
		r.Learner = shared.Queue.Learn()
	}
	for _, name := range args.Accelerators {
		r.Accelerators = append(r.Accelerators, corev1.ResourceName(name))
	}
	changed := func(any) { shared.Queue.Reread() }
	_, err = informers.Scheduling().V1().PriorityClasses().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, now any) { changed(now) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return r, nil
}

// Name returns the plugin's name.
func (*GangPlacement) Name() string { return Name }

// EventsToRegister registers the events that wake a gang that waits for the end of its preemption: in-tree
// DefaultPreemption gates it and leaves the waking to the plugin that rejected it. Any other rejected gang is woken by
// the waiting queue or retried by the scheduling queue's timer, whatever is registered.
func (p *GangPlacement) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	gone := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	marked := fwk.ClusterEvent{
		Resource:   fwk.Node,
		ActionType: fwk.Add | fwk.Delete | fwk.UpdateNodeAnnotation | fwk.UpdateNodeCondition | fwk.UpdateNodeTaint,
	}
	return []fwk.ClusterEventWithHint{{Event: gone}, {Event: marked, QueueingHintFn: p.closed.reopened}}, nil
}

// ScorePlacement prefers the planned placement: it is the one that was optimized.
func (*GangPlacement) ScorePlacement(
	_ context.Context, state fwk.PlacementCycleState, _ fwk.PodGroupInfo, assignments *fwk.PodGroupAssignments,
) (int64, *fwk.Status) {
	plan := planOf(state.GetPodGroupSchedulingCycle())
	if plan != nil && assignments.Placement == plan.unpinned {
		return 0, nil
	}
	return fwk.MaxScore, nil
}

// PlacementScoreExtensions returns nil: scores are final.
func (*GangPlacement) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }
