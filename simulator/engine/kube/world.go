package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/clock"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/topology"
)

// world is a scenario in play: a cluster's objects, the scheduler, and the due events.
type world struct {
	scene *scenario.Scenario
	// given has the API objects behind the scenario.
	given   *importer.Objects
	watcher engine.Watcher
	options Options
	clock   *clock.Clock
	// versions counts changes of objects.
	versions uint64

	nodes, pods, groups, classes *stepped.Informer

	client   *client
	parts    parts
	sched    *kubescheduler.Scheduler
	logger   klog.Logger
	queue    stepped.Queue
	bindings *bindings
	// popped is the gang that was asked last, nil for a pod in none.
	popped *framework.QueuedPodGroupInfo
	// beside are the functions that plugins want called when the cycle is over.
	beside []func()

	tolerations []corev1.Toleration
	asked       map[string]corev1.ResourceList

	jobs    []job
	running []running
	// byGroup are the jobs and the units that run, by the namespaced name of their PodGroups; podRanks are the owners
	// of pods and their ranks, by theirs.
	byGroup  map[types.NamespacedName]owner
	podRanks map[types.NamespacedName]podRank
	ends     agenda
	// submitted and happened are the numbers of jobs that arrived, and of events of nodes.
	submitted, happened int
	// promised is the last time at which the PodGroups of waiting jobs stated their ends.
	promised time.Duration
	// waiting counts jobs that wait, fresh are those of them that began to at this instant.
	waiting int
	fresh   []int
	// bound are jobs with members that were bound just now.
	bound []int
	// starts counts the starts of jobs.
	starts int
	// kept holds the reports of closed leases, by job; keptAt is the number of lease changes at that time.
	kept   map[int]kept
	keptAt int
	// quiet is the time of the last event that could let a job start, left that of the scheduler's next look at those
	// that wait for no reason.
	quiet, left time.Time
}

// owner is a job, or something that ran from the beginning.
type owner struct{ job, running int }

// podRank is the owner of a pod, and its rank there.
type podRank struct {
	owner

	rank int
}

// byStart orders running units by their starts; initial ones are first.
func (w *world) byStart(a, b owner) int {
	number := func(o owner) int {
		if o.job == engine.None {
			return 0
		}
		return w.jobs[o.job].number
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.running, b.running))
}

// early is the time by which the scheduler starts before the scenario's beginning: it waits until it has seen all that
// is there.
const early = 10 * time.Second

// errShrinks refuses elastic jobs whose members leave alone: this engine takes whole jobs away.
var errShrinks = errors.New("elastic jobs that shrink are played by engine direct only")

func newWorld(
	ctx context.Context, s *scenario.Scenario, objects *importer.Objects, w engine.Watcher, o Options,
) (*world, error) {
	if slices.ContainsFunc(s.Jobs, func(j scenario.Job) bool { return j.Shrinks }) {
		return nil, errShrinks
	}
	out := &world{
		scene:    s,
		given:    objects,
		watcher:  w,
		options:  o,
		clock:    clock.New(s.Begin.Add(-early)),
		nodes:    stepped.NewInformer(),
		pods:     stepped.NewInformer(),
		groups:   stepped.NewInformer(),
		classes:  stepped.NewInformer(),
		bindings: newBindings(),
		asked:    make(map[string]corev1.ResourceList),
		jobs:     make([]job, len(s.Jobs)),
		running:  make([]running, len(s.Running)),
		byGroup: make(
			map[types.NamespacedName]owner,
		),
		podRanks: make(map[types.NamespacedName]podRank),
		logger:   logr.Discard(),
	}
	for i := range s.Jobs {
		out.jobs[i].given, out.jobs[i].queuedAt = objects.Jobs[s.Jobs[i].ID], s.Jobs[i].Submit-s.Jobs[i].Waited
		out.byGroup[out.groupOf(i)] = owner{i, engine.None}
	}
	placement, err := config.Placement(nil)
	if err != nil {
		return nil, fmt.Errorf("reading which resources are accelerators: %w", err)
	}
	for _, name := range placement.Accelerators {
		out.tolerations = append(out.tolerations, corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists})
	}
	if out.client, err = newClient(out.pods); err != nil {
		return nil, err
	}
	t := timing.Timing{Clock: out.clock, Beside: func(do func()) { out.beside = append(out.beside, do) }}
	if out.parts, err = partsOf(o, t, s.Options.Seed, out.bindings); err != nil {
		return nil, err
	}
	if err := out.makeScheduler(ctx); err != nil {
		return nil, err
	}
	return out, out.populate(ctx)
}

// makeScheduler makes the scheduler, and takes its queue and its failures in hand.
func (w *world) makeScheduler(ctx context.Context) error {
	sched, queue, err := stepped.New(ctx, stepped.Parts{
		Client: w.client,
		Informers: map[stepped.Object]*stepped.Informer{
			&corev1.Node{}: w.nodes, &corev1.Pod{}: w.pods, &schedulingv1beta1.PodGroup{}: w.groups,
			&schedulingv1.PriorityClass{}: w.classes,
		},
		Config: w.parts.config, Plugins: w.parts.registry, Clock: w.clock,
	})
	if err != nil {
		return err
	}
	w.sched, w.queue = sched, queue
	next := sched.NextEntity
	sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := next(logger)
		w.popped = nil
		if group, ok := entity.(*framework.QueuedPodGroupInfo); ok {
			w.popped = group
			w.promise()
		}
		return entity, err
	}
	fail := sched.FailureHandler
	sched.FailureHandler = func(
		ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status,
		nominating *fwk.NominatingInfo, start time.Time,
	) {
		uid := pod.Pod.UID
		fail(ctx, f, pod, status, nominating, start)
		w.bindings.done(uid)
	}
	return nil
}

// populate adds the initial objects, and waits until the scheduler has processed them.
func (w *world) populate(ctx context.Context) error {
	named := make([]topology.Node, len(w.given.Nodes))
	for i, node := range w.given.Nodes {
		named[i] = topology.Node{Name: node.Name, Labels: node.Labels}
	}
	if err := w.classes.Add(touched(w, protectedClass())); err != nil {
		return err
	}
	discovered := topology.Discovered(named)
	for i := range w.given.Nodes {
		if err := w.nodes.Add(touched(w, w.nodeOf(i, discovered))); err != nil {
			return err
		}
	}
	for i, r := range w.scene.Running {
		w.running[i].until = r.Ends
		if err := w.occupy(i, w.given.Running[i]); err != nil {
			return err
		}
		if r.Ends != scenario.Forever {
			w.ends.add(end{at: r.Ends, of: owner{engine.None, i}})
		}
	}
	for {
		if err := w.settle(ctx); err != nil {
			return err
		}
		next, ok := w.clock.Next()
		if !ok || next.After(w.scene.Begin) {
			break
		}
		w.clock.Advance(next)
	}
	w.clock.Advance(w.scene.Begin)
	w.quiet, w.left = w.scene.Begin, w.scene.Begin
	return w.settle(ctx)
}

// occupy adds a running unit.
func (w *world) occupy(i int, r importer.Workload) error {
	who := owner{engine.None, i}
	if r.Group != nil {
		w.byGroup[stepped.NameOf(r.Group)] = who
		if err := w.groups.Add(touched(w, r.Group.DeepCopy())); err != nil {
			return err
		}
	}
	for rank, pod := range r.Pods {
		w.podRanks[stepped.NameOf(pod)] = podRank{who, rank}
		pod = pod.DeepCopy()
		leaveAtOnce(pod)
		if err := w.pods.Add(touched(w, pod)); err != nil {
			return err
		}
	}
	return nil
}

// version is the resource version of the next change.
func (w *world) version() string {
	w.versions++
	return strconv.FormatUint(w.versions, 10)
}

// since returns the instant as events report it. Nudges, which separate events at one instant, are cut off.
func (w *world) since() time.Duration {
	return w.clock.Since(w.scene.Begin).Truncate(time.Millisecond)
}

// close ends the goroutines that the scheduler started.
func (w *world) close() {
	w.sched.SchedulingQueue.Close()
	_ = w.sched.Profiles.Close() // plugins that cannot be closed hold nothing of this process
}

// touched gives an object that is about to replace another one a resource version of its own: handlers ignore equal
// ones.
func touched[T stepped.Object](w *world, o T) T {
	if m, err := meta.Accessor(o); err == nil {
		m.SetResourceVersion(w.version())
	}
	return o
}
