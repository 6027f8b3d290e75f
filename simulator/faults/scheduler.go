package faults

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "github.com/lockstep-project/lockstep/manifests/scheduler"
	lockstep "github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// look is how often kube-scheduler looks at those that wait for no reason.
const look = 30 * time.Second

// scheduler is a process of ours that schedules, or stands by.
type scheduler struct {
	*process

	sched   *kubescheduler.Scheduler
	queue   stepped.Queue
	waiting *waiting.Queue
	logger  klog.Logger
	left    time.Time

	mu     sync.Mutex
	leads  bool
	beside []func()
}

// startScheduler starts a scheduler that stands by.
func (w *world) startScheduler() *scheduler {
	s := &scheduler{process: w.newProcess(schedulerName), left: w.now()}
	w.must(s.make())
	w.processes = append(w.processes, s.process)
	s.next = s.goOn
	w.note("%s %d starts", s.name, w.born[s.name])
	return s
}

func (s *scheduler) make() error {
	config, err := shipped()
	if err != nil {
		return err
	}
	pods, nodes, groups, classes := stepped.NewUnfilled(), stepped.NewUnfilled(), stepped.NewUnfilled(), stepped.NewUnfilled()
	ended, budgets := stepped.NewUnfilled(), stepped.NewUnfilled()
	set, err := wire.Clientset(s.calls, s.world.server, config.ClientConnection.QPS, int(config.ClientConnection.Burst))
	if err != nil {
		return fmt.Errorf("making a scheduler: %w", err)
	}
	factory := informers.NewSharedInformerFactory(set, 0)
	for object, of := range map[stepped.Object]*stepped.Informer{
		&corev1.Node{}: nodes, &corev1.Pod{}: pods, &schedulingv1beta1.PodGroup{}: groups,
		&schedulingv1.PriorityClass{}: classes, &policyv1.PodDisruptionBudget{}: budgets,
	} {
		factory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return of })
	}
	t := timing.With(s.clock)
	t.Beside = s.later
	registry, queue := lockstep.Successive(t, members.EndedOf(ended), s.isLeading)
	s.waiting = queue
	s.sched, err = kubescheduler.New(s.ctx, set, factory, nil,
		func(string) events.EventRecorderLogger { return stepped.Silent{} },
		kubescheduler.WithProfiles(config.Profiles...),
		kubescheduler.WithClock(s.clock),
		kubescheduler.WithParallelism(1),
		kubescheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		kubescheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		kubescheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		kubescheduler.WithFrameworkOutOfTreeRegistry(registry),
	)
	if err != nil {
		return fmt.Errorf("making a scheduler: %w", err)
	}
	if s.queue, err = stepped.Look(s.sched.SchedulingQueue); err != nil {
		return fmt.Errorf("making a scheduler: %w", err)
	}
	return s.fill(map[string]*stepped.Informer{
		"Node": nodes, "PodGroup": groups, "PriorityClass": classes, "PodDisruptionBudget": budgets,
	}, pods, ended)
}

// fill has the informers filled in the order in which kube-scheduler waits for them, which is none.
func (s *scheduler) fill(of map[string]*stepped.Informer, pods, ended *stepped.Informer) error {
	untold := func(_, _ client.Object) {}
	for _, kind := range []string{"PriorityClass", "Node", "PodGroup", "PodDisruptionBudget"} {
		if err := s.watch(kind, of[kind], all, untold); err != nil {
			return err
		}
	}
	if err := s.watch("Pod", ended, hasEnded, untold); err != nil {
		return err
	}
	return s.watch("Pod", pods, func(o client.Object) bool { return !hasEnded(o) }, untold)
}

// hasEnded is the field selector of informers of pods.
func hasEnded(o client.Object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

func (s *scheduler) later(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beside = append(s.beside, do)
}

func (s *scheduler) isLeading() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads
}

// lead makes the scheduler the leader.
func (s *scheduler) lead() {
	s.mu.Lock()
	s.leads = true
	s.mu.Unlock()
	s.world.leader = s
	s.world.note("%s leads", s.name)
}

// goOn does one thing: what plugins want done beside the loop, or a cycle.
func (s *scheduler) goOn() bool {
	s.mu.Lock()
	todo := s.beside
	s.beside = nil
	s.mu.Unlock()
	for _, do := range todo {
		s.step(do)
	}
	if len(todo) > 0 {
		return true
	}
	if s.busy.Load() || !s.isLeading() || s.queue.IsEmpty() {
		return false
	}
	s.soon(func() { s.sched.ScheduleOne(s.ctx) })
	return true
}

// bringBack does what the scheduling queue's own goroutines do by the machine's clock.
func (s *scheduler) bringBack() {
	s.soon(func() {
		s.queue.FlushPaused(s.logger)
		if now := s.world.now(); !now.Before(s.left.Add(look)) {
			s.left = now
			s.queue.FlushLeft(s.logger)
		}
	})
}

// soonest is when anything is due in this scheduler.
func (s *scheduler) soonest() time.Time {
	first := s.left.Add(look)
	if at, ok := s.queue.Next(s.clock.Now()); ok {
		if at = at.Add(-s.world.skew[s.name]); at.Before(first) {
			first = at
		}
	}
	return first
}

// die ends the process.
func (s *scheduler) die() {
	s.world.note("%s dies", s.name)
	if s.world.leader == s {
		s.world.leader = nil
	}
	s.world.kill(s.process)
	for _, f := range s.sched.Profiles {
		f.IterateOverWaitingPods(func(pod fwk.WaitingPod) { pod.Reject("faults", "the scheduler has died") })
	}
	s.world.still()
	s.sched.SchedulingQueue.Close()
	_ = s.sched.Profiles.Close() // plugins that cannot be closed hold nothing of this process
	s.world.still()
}

// shipped is the profile that is shipped.
func shipped() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(manifests.Config(), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	config, ok := decoded.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("the scheduler's configuration is a %T", decoded) //nolint:err113 // a fault of the build
	}
	return config, nil
}
