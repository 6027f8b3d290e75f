// Package gangqueue is the scheduler plugin that decides the order of the queue and lets a gang into it whole.
//
// A gang is opened once, by the event that completes it, and stays open as long as its PodGroup exists. Both kinds of
// completing event (a member or the PodGroup itself is added) are judged in the scheduler's own event handler, after
// that handler has put the object into the queue and in constant time, through a pre-queueing hint. So there is no
// order of events in which the last member is missing from the queue when the gang opens, or in which nothing opens it:
//
//   - the scheduler adds a member to its count, then to the queue, then asks the hint about the event;
//   - whichever object arrives last, its event finds all others in the count and in the queue;
//   - until then PreEnqueue keeps the gang gated, so that adding a member costs no pass over the others.
//
// A gang that does not fit is parked: PreEnqueue keeps it out until the cluster changes (see package waiting).
//
// Members that are bound before the scheduler sees them (after its restart) raise no such event: see Recheck.
package gangqueue

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/finished"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/podgroups"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangQueue"

// GangQueue orders the queue and gates incomplete gangs.
type GangQueue struct {
	handle fwk.Handle
	clock  clock.WithDelayedExecution
	queue  *waiting.Queue
	// profile is the schedulerName of the pods that are scheduled here.
	profile string
	// settled calls do when the scheduler's own handlers have surely seen the events that ours saw.
	settled func(do func())
	// beside does something beside the scheduling loop; nil does nothing.
	beside func(do func(context.Context))
	pods   corelisters.PodLister
	groups schedulinglisters.PodGroupLister
	// endings records the results of ended pods.
	endings *members.Ended
	// acts reports whether this scheduler decides, and not another one for which it stands by.
	acts func() bool
	// seen reports whether our handler has received all pods that existed at the start.
	seen cache.InformerSynced
	// explain reports the missing members of incomplete gangs; nil reports none.
	explain *explanation.Writer
	// gangs has a lock of its own, under which nothing else is called that may lock.
	gangs *gangs
}

// gangs holds the known state of gangs and refused pods.
type gangs struct {
	mu sync.Mutex
	// open holds the gangs that were complete once, by PodGroup.
	open map[types.NamespacedName]types.UID
	// starting is set until the scheduler's handlers have seen the objects that existed at its start; early are pods
	// that enter the queue before that, one of every gang, and arrivals is the number of all that do.
	starting bool
	early    map[types.NamespacedName]*corev1.Pod
	arrivals int
	// events are the pods and gangs that events are for.
	events candidates
	// checking holds the gangs for which a recheck is under way.
	checking map[types.NamespacedName]bool
	// holders are the members of each gang that hold a place: they have a node, have not ended and are not being
	// deleted. leaving are those that are being deleted, until they no longer exist: the gang cannot start with them.
	holders, leaving membersOf
	// revised holds the gangs that are looked at in a moment, since they lost members.
	revised sets.Set[types.NamespacedName]
	// watched holds the gangs that are looked at later, since they lack members.
	watched map[types.NamespacedName]bool
	// enough holds the elastic gangs that are admitted with the members that exist: the others were not made in time.
	enough map[types.NamespacedName]types.UID
	// noting holds the gangs about whose finished members something is being written.
	noting sets.Set[types.NamespacedName]
	// succeeded is the number of succeeded pods of a Job, as the Job reports it, by PodGroup and by the Job's UID.
	succeeded map[types.NamespacedName]map[types.UID]int
}

func newGangs() *gangs {
	return &gangs{
		open:      make(map[types.NamespacedName]types.UID),
		early:     make(map[types.NamespacedName]*corev1.Pod),
		events:    newCandidates(),
		checking:  make(map[types.NamespacedName]bool),
		holders:   make(membersOf),
		leaving:   make(membersOf),
		watched:   make(map[types.NamespacedName]bool),
		enough:    make(map[types.NamespacedName]types.UID),
		noting:    sets.New[types.NamespacedName](),
		revised:   sets.New[types.NamespacedName](),
		succeeded: make(map[types.NamespacedName]map[types.UID]int),
	}
}

var (
	_ fwk.QueueSortPlugin   = (*GangQueue)(nil)
	_ fwk.PreEnqueuePlugin  = (*GangQueue)(nil)
	_ fwk.PostFilterPlugin  = (*GangQueue)(nil)
	_ fwk.ReservePlugin     = (*GangQueue)(nil)
	_ fwk.EnqueueExtensions = (*GangQueue)(nil)
)

// New returns the plugin's factory.
func New(
	queue *waiting.Queue, ended *members.Ended, acts func() bool, explain *explanation.Writers, t timing.Timing,
) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		q, err := NewWithClock(handle, t.Clock, queue)
		if err != nil {
			return nil, err
		}
		q.endings, q.acts = ended, acts
		if err := ended.Follow(ctx, handle, q.ended); err != nil {
			return nil, err
		}
		q.explain = explain.Of(ctx, handle)
		q.beside = func(do func(context.Context)) { t.Beside(func() { do(ctx) }) }
		q.gangs.starting = true
		q.settled = func(do func()) { t.AfterFunc(t.Settle, do) }
		t.Beside(func() { q.begin(ctx) })
		return q, nil
	}
}

// NewWithClock makes the plugin.
func NewWithClock(
	handle fwk.Handle, c clock.WithDelayedExecution, queue *waiting.Queue,
) (*GangQueue, error) {
	q := &GangQueue{
		handle: handle, clock: c, queue: queue, profile: handle.ProfileName(), gangs: newGangs(),
		settled: func(do func()) { c.AfterFunc(timing.With(c).Settle, do) },
		pods:    handle.SharedInformerFactory().Core().V1().Pods().Lister(),
	}
	q.groups = handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Lister()
	groups := handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Informer()
	if err := groups.SetTransform(finished.Transform); err != nil {
		return nil, fmt.Errorf("watching PodGroups without their finished members: %w", err)
	}
	if _, err := groups.AddEventHandler(
		cache.ResourceEventHandlerFuncs{UpdateFunc: q.groupChanged, DeleteFunc: q.forget},
	); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer()
	seen, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: q.added, UpdateFunc: q.podChanged, DeleteFunc: q.podGone,
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	q.seen = seen.HasSynced
	nodes := handle.SharedInformerFactory().Core().V1().Nodes().Informer()
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { queue.Changed() }, UpdateFunc: q.nodeChanged,
	}); err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	queue.Wakes(q.wake)
	return q, nil
}

// Name returns the plugin's name.
func (*GangQueue) Name() string { return Name }

// PreEnqueue gates the members of a gang that was never complete, or is not any more.
func (q *GangQueue) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	key, ok := snapshot.GroupOf(pod)
	if q.holds(key, pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the scheduler starts")
	}
	if !ok {
		if q.queue.Gates(nil, pod) {
			return fwk.NewStatus(
				fwk.UnschedulableAndUnresolvable,
				"the pod waits until something changes that could help it",
			)
		}
		return nil
	}
	group, err := q.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waiting for PodGroup "+key.Name)
	}
	if podgroups.Unstamped(group, pod) {
		q.watchMembers(key)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "PodGroup "+key.Name+" gets its pods' priority")
	}
	if group.Spec.SchedulingPolicy.Gang == nil {
		q.enters(pod)
		return nil
	}
	if q.isOpen(key, group.UID) && q.complete(group) {
		if q.queue.Gates(group, pod) {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "gang "+key.Name+" waits until something changes")
		}
		q.enters(pod)
		return nil
	}
	q.noteFinished(group)
	q.watchMembers(key)
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waiting for the other members of gang "+key.Name)
}

// EventsToRegister registers the events that complete a gang, and events of bound pods, which concern no parked gang.
func (q *GangQueue) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	members := fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Add}
	groups := fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Add | fwk.Update}
	assigned := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}
	left := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	return []fwk.ClusterEventWithHint{
		{Event: assigned, PreQueueingHintFn: q.moved, QueueingHintFn: bound},
		{Event: left, PreQueueingHintFn: q.moved, QueueingHintFn: freed},
		{Event: members, PreQueueingHintFn: q.narrow, QueueingHintFn: q.hint},
		{Event: groups, PreQueueingHintFn: q.narrow, QueueingHintFn: q.hint},
	}, nil
}
