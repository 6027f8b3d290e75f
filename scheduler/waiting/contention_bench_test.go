//go:build !race

package waiting_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// arena is 64 nodes of eight GPUs under a stream of pods and gangs of one GPU, always 1.3 times as many as there is
// room for. A job runs four to eight seconds; pods have a deadline of twelve, and running gangs report that they end by
// then, as their trainers do.
type arena struct {
	*schedulertest.Cluster
	random *rand.Rand
	cancel context.CancelFunc

	mu sync.Mutex
	// runs is the run time of each pod of the stream, lives the running one, by the pod's name.
	runs  map[string]time.Duration
	lives map[string]life
	// ended are the pods of the stream that ran to their ends, evicted those that the scheduler ended, lost the
	// GPU-seconds that these had run.
	ended, evicted int
	lost           float64
}

type life struct {
	began, ends time.Time
	gpus        int64
	told        bool
	group       string
}

const (
	arenaNodes = 64
	arenaGPUs  = 8 * arenaNodes
	deadline   = 12 * time.Second
)

func newArena(
	b *testing.B, seed uint64, config *schedulerconfig.KubeSchedulerConfiguration, registry frameworkruntime.Registry,
) *arena {
	b.Helper()
	nodes := schedulertest.Cliques(arenaNodes/16, 16)
	for _, n := range nodes {
		for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
			list[schedulertest.GPU] = resource.MustParse("8")
		}
	}
	a := &arena{
		Cluster: schedulertest.NewUnstartedCluster(b, nodes),
		random:  rand.New(rand.NewPCG(seed, 5)),
		runs:    map[string]time.Duration{},
		lives:   map[string]life{},
	}
	a.PrependReactor("create", "pods", a.begin)
	a.PrependReactor("delete", "pods", a.evict)
	ctx, cancel := context.WithCancel(b.Context())
	a.cancel = cancel
	a.StartScheduler(ctx, b, a, config, registry)
	came := 0
	go a.every(ctx, 20*time.Millisecond, func() {
		a.tend(ctx)
		for left := a.left(); came < left+arenaGPUs*13/10; came++ {
			a.come(ctx, came)
		}
	})
	return a
}

// every does something at a fixed rate.
func (*arena) every(ctx context.Context, period time.Duration, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// left returns the number of pods of the stream that have left, whatever their end.
func (a *arena) left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended + a.evicted
}

// come creates the next of the stream: pods and gangs of one in turn.
func (a *arena) come(ctx context.Context, n int) {
	name := fmt.Sprintf("stream-%06d", n)
	p := schedulertest.Pod(name, "1")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.ActiveDeadlineSeconds = new(int64(deadline.Seconds()))
	p.Spec.Priority = new(int32(0))
	a.mu.Lock()
	a.runs[name] = 4*time.Second + time.Duration(a.random.Int64N(int64(4*time.Second)))
	a.mu.Unlock()
	if n%2 == 1 {
		group, members := schedulertest.Gang(name, 1, "")
		group.Annotations, group.CreationTimestamp = nil, metav1.Now()
		schedulertest.SetPriority(group, members, 0)
		p.Spec.SchedulingGroup = members[0].Spec.SchedulingGroup
		_, _ = a.SchedulingV1beta1().PodGroups(schedulertest.Namespace).Create(ctx, group, metav1.CreateOptions{})
	}
	_, _ = a.CoreV1().Pods(schedulertest.Namespace).Create(ctx, p, metav1.CreateOptions{})
}

// begin lets a pod run that is bound.
func (a *arena) begin(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || create.GetSubresource() != "binding" {
		return false, nil, nil
	}
	handled, object, err := a.Bind(action)
	binding, _ := create.GetObject().(*corev1.Binding)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := time.Now()
		l := life{began: now, ends: now.Add(a.runs[binding.Name]), gpus: 1, group: binding.Name}
		if _, streams := a.runs[binding.Name]; !streams {
			l.ends, l.gpus, l.group = now.Add(3*time.Second), 8, ""
		}
		a.lives[binding.Name] = l
	}
	return handled, object, err
}

// evict observes the scheduler's evictions: the test itself writes to the store.
func (a *arena) evict(action clienttesting.Action) (bool, runtime.Object, error) {
	gone, _ := action.(clienttesting.DeleteAction)
	a.mu.Lock()
	defer a.mu.Unlock()
	if l, ok := a.lives[gone.GetName()]; ok {
		a.evicted++
		a.lost += time.Since(l.began).Seconds() * float64(l.gpus)
		delete(a.lives, gone.GetName())
	}
	return false, nil, nil
}

// tend plays the kubelets: pods run, end and are deleted.
func (a *arena) tend(ctx context.Context) {
	now := time.Now()
	a.mu.Lock()
	starts, ends := map[string]life{}, map[string]life{}
	for name, l := range a.lives {
		switch {
		case !now.Before(l.ends):
			ends[name] = l
			delete(a.lives, name)
		case !l.told:
			starts[name] = l
			l.told = true
			a.lives[name] = l
		}
	}
	for _, l := range ends {
		if l.group != "" {
			a.ended++
		}
	}
	a.mu.Unlock()
	for name, l := range starts {
		a.say(ctx, name, corev1.PodRunning, l.began)
		if group, err := a.SchedulingV1beta1().
			PodGroups(schedulertest.Namespace).
			Get(ctx, l.group, metav1.GetOptions{}); err == nil {
			_, _ = a.SchedulingV1beta1().PodGroups(schedulertest.Namespace).
				Update(ctx, schedulertest.SetExpectedEnd(group.DeepCopy(), deadline), metav1.UpdateOptions{})
		}
	}
	for name, l := range ends {
		a.say(ctx, name, corev1.PodSucceeded, l.began)
		_ = a.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), schedulertest.Namespace, name)
		if l.group != "" {
			_ = a.Tracker().
				Delete(schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"), schedulertest.Namespace, l.group)
		}
	}
}

func (a *arena) say(ctx context.Context, name string, phase corev1.PodPhase, began time.Time) {
	p, err := a.CoreV1().Pods(schedulertest.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	p = p.DeepCopy()
	p.Status.Phase, p.Status.StartTime = phase, &metav1.Time{Time: began}
	_, _ = a.CoreV1().Pods(schedulertest.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
}

// used returns the number of GPUs in use.
func (a *arena) used() (gpus int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lives {
		gpus += l.gpus
	}
	return gpus
}

// bout holds the outcome of one gang.
type bout struct {
	// waited is the limit if it did not start.
	waited  time.Duration
	started bool
	// ended and used are the number of the stream that ended meanwhile, and the part of the fleet that was in use.
	ended int
	used  float64
	// evicted and lost count the units that the scheduler ended meanwhile, and their lost work.
	evicted int
	lost    float64
}

// unsuccessful returns the number of units evicted for a gang that did not start.
func (o bout) unsuccessful() int {
	if o.started {
		return 0
	}
	return o.evicted
}

// enter creates a large gang when the fleet is full, and waits for it.
func (a *arena) enter(b *testing.B, name string, nodes int, priority int32, limit time.Duration) bout {
	b.Helper()
	full := func() bool { return a.left() >= arenaGPUs && a.used() >= arenaGPUs*97/100 }
	for until := time.Now().Add(time.Minute); !full(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatalf("the stream fills %d of %d GPUs", a.used(), arenaGPUs)
		}
	}
	group, members := schedulertest.Gang(name, nodes, "")
	group.Annotations = nil
	schedulertest.SetPriority(group, members, priority)
	for _, m := range members {
		schedulertest.SetRequest(m, schedulertest.GPU, "8")
	}
	a.mu.Lock()
	ended, evicted, lost := a.ended, a.evicted, a.lost
	a.mu.Unlock()
	began, samples, used := time.Now(), 0, int64(0)
	group.CreationTimestamp = metav1.NewTime(began)
	for _, o := range append(schedulertest.Objects(group), schedulertest.Objects(members...)...) {
		if err := a.Tracker().Add(o); err != nil {
			b.Fatal(err)
		}
	}
	out := bout{waited: limit}
	for time.Since(began) < limit && !out.started {
		time.Sleep(20 * time.Millisecond)
		samples, used = samples+1, used+a.used()
		out.started = !slices.ContainsFunc(members, func(m *corev1.Pod) bool { return a.NodeOf(m.Name) == "" })
		if out.started {
			out.waited = time.Since(began)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out.ended, out.evicted, out.lost = a.ended-ended, a.evicted-evicted, a.lost-lost
	out.used = 100 * float64(used) / float64(samples) / arenaGPUs
	return out
}

// sides are the two schedulers that are compared.
func sides(b *testing.B) map[string]func() (*schedulerconfig.KubeSchedulerConfiguration, frameworkruntime.Registry) {
	b.Helper()
	return map[string]func() (*schedulerconfig.KubeSchedulerConfiguration, frameworkruntime.Registry){
		"native": func() (*schedulerconfig.KubeSchedulerConfiguration, frameworkruntime.Registry) {
			return schedulertest.NativeConfig(b), nil
		},
		"ours": func() (*schedulerconfig.KubeSchedulerConfiguration, frameworkruntime.Registry) {
			return schedulertest.Config(b), schedulertest.Registry(clock.RealClock{})
		},
	}
}

// BenchmarkContention creates gangs under the stream, one after another: one of half the fleet with a higher priority
// than the stream, then one of half the fleet and one of the whole without. A gang that has not started at the limit
// waits on. The reported figures are medians of three rounds, native and ours in turn.
func BenchmarkContention(b *testing.B) {
	const limit, rounds = 20 * time.Second, 3
	for b.Loop() {
		figures := map[string][]float64{}
		note := func(side, which string, o bout) {
			started := 0.0
			if o.started {
				started = 1
			}
			for what, figure := range map[string]float64{
				"started":  started,
				"s-waited": o.waited.Seconds(), "evicted-without-result": float64(o.unsuccessful()), "ran-meanwhile": float64(o.ended), "%-in-use": o.used,
				"evicted": float64(o.evicted), "GPU-s-lost": o.lost,
			} {
				key := side + "/" + which + "/" + what
				figures[key] = append(figures[key], figure)
			}
		}
		for round := range rounds {
			for _, side := range []string{"native", "ours"} {
				config, registry := sides(b)[side]()
				a := newArena(b, uint64(round), config, registry)
				note(side, "important", a.enter(b, "important", arenaNodes/2, 1000, limit))
				note(side, "half", a.enter(b, "half", arenaNodes/2, 0, limit))
				note(side, "whole", a.enter(b, "whole", arenaNodes, 0, limit))
				a.cancel()
			}
		}
		for name, all := range figures {
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2], name)
		}
	}
}
