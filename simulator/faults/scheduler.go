package faults

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/manifests/chart"
	lockstep "github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// look is the interval at which kube-scheduler evaluates those that wait for no reason.
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
	config, err := stepped.Config(chart.Profile())
	if err != nil {
		return err
	}
	client, err := wire.Clientset(
		s.calls,
		s.world.server,
		config.ClientConnection.QPS,
		int(config.ClientConnection.Burst),
	)
	if err != nil {
		return err
	}
	of, ended := make(map[string]*stepped.Informer), stepped.NewUnfilled()
	informers := make(map[stepped.Object]*stepped.Informer)
	for kind, object := range map[string]stepped.Object{
		"Node": &corev1.Node{}, "Pod": &corev1.Pod{}, "PodGroup": &schedulingv1beta1.PodGroup{},
		"PriorityClass": &schedulingv1.PriorityClass{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"DeviceClass": &resourcev1.DeviceClass{}, "ResourceSlice": &resourcev1.ResourceSlice{},
		"ResourceClaim": &resourcev1.ResourceClaim{},
	} {
		of[kind] = stepped.NewUnfilled()
		informers[object] = of[kind]
	}
	t := timing.With(s.clock)
	t.Beside = s.later
	plugins, queue := lockstep.Successive(t, members.EndedOf(ended), s.isLeading)
	s.waiting = queue
	s.sched, s.queue, err = stepped.New(s.ctx, stepped.Parts{
		Client: client, Informers: informers, Config: config, Plugins: plugins, Clock: s.clock,
	})
	if err != nil {
		return err
	}
	return s.fill(of, ended)
}

// fill fills the informers. Pods are last: each then finds its group and its node.
func (s *scheduler) fill(of map[string]*stepped.Informer, ended *stepped.Informer) error {
	untold := func(_, _ client.Object) {}
	for _, kind := range []string{
		"PriorityClass", "Node", "PodGroup", "PodDisruptionBudget", "DeviceClass", "ResourceSlice", "ResourceClaim",
	} {
		if err := s.watch(kind, of[kind], all, untold); err != nil {
			return err
		}
	}
	if err := s.watch("Pod", ended, hasEnded, untold); err != nil {
		return err
	}
	return s.watch("Pod", of["Pod"], func(o client.Object) bool { return !hasEnded(o) }, untold)
}

// hasEnded is the field selector of informers of pods.
func hasEnded(o client.Object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && snapshot.Ended(pod)
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

// goOn does one step: the pending work of plugins beside the loop, or a cycle.
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

// bringBack does the work of the scheduling queue's own goroutines, which follow the machine's clock.
func (s *scheduler) bringBack() {
	s.soon(func() {
		s.queue.FlushPaused(s.logger)
		if now := s.world.now(); !now.Before(s.left.Add(look)) {
			s.left = now
			s.queue.FlushLeft(s.logger)
		}
	})
}

// soonest returns the time of the next due event in this scheduler.
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
