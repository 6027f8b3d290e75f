package scheduler_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
)

var long = flag.Bool("long", false, "run the long form of the fault tests")

var (
	podResource  = corev1.SchemeGroupVersion.WithResource("pods")
	nodeResource = corev1.SchemeGroupVersion.WithResource("nodes")
)

// slowest multiplies the patience of the tests, which was chosen on good machines, as stage.Within does for clusters.
const slowest = 4

// burst is the time that the bindings of a gang may take without disturbance: milliseconds, but not on a busy machine.
// The time for which the process had no processor does not count: a check that did not look for longer than stall was
// stopped.
const (
	burst = time.Second
	stall = 100 * time.Millisecond
)

// fakeCluster is an API server that outlives its schedulers, a Job controller, and checks of each gang's events.
// Schedulers and the test talk to the server through accesses of their own; it serves one request at a time.
type fakeCluster struct {
	*schedulertest.Cluster
	grace time.Duration
	hooks *hooks

	store sync.Mutex
	// current is the access of the scheduler that runs.
	current *access
	// refuses makes a binding fail; binds is called right after one that did not. They hold the store's lock.
	refuses func(pod *corev1.Pod, node string) error
	binds   func(j *job, pod *corev1.Pod)
	// goesOn is called all the time while the test waits for an event.
	goesOn func(t *testing.T)
	jobs   map[string]*job
	// used are the GPUs that bound pods ask for, by node.
	used map[string]int64
	// hit is the time of the test's last action that may tear a gang that was whole: the grace counts from it.
	hit time.Time
	// looked is the time of the last look at all gangs, stalls the sum of all times without one.
	looked time.Time
	stalls time.Duration
	// evicted are the pods that a scheduler deleted.
	evicted []string
	// faults are the observed breaches of invariants.
	faults []string
}

// newFakeCluster makes a cluster without a scheduler. The grace is that of GangPermit.
func newFakeCluster(t *testing.T, nodes []*corev1.Node, grace time.Duration) *fakeCluster {
	t.Helper()
	w := &fakeCluster{
		Cluster: schedulertest.NewUnstartedCluster(t, nodes),
		grace:   grace, jobs: make(map[string]*job), used: make(map[string]int64),
	}
	w.PrependReactor("*", "*", w.serve(&access{left: -1}))
	return w
}

// access is one scheduler's way to the API server.
type access struct {
	*fake.Clientset
	// left is the number of bindings that still arrive before the scheduler dies, negative if it does not.
	left int
	dead bool
	kill context.CancelFunc
}

// start starts a scheduler that dies after so many bindings, which is in the middle of a gang's: from that instant on
// nothing that it writes arrives. A negative number lets it live.
func (w *fakeCluster) start(t *testing.T, bindings int) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	a := &access{Clientset: fake.NewClientset(), left: bindings, kill: kill}
	a.PrependReactor("*", "*", w.serve(a))
	a.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w.store.Lock()
		defer w.store.Unlock()
		changes, err := fakeserver.Watch(w.Tracker(), action)
		return true, changes, err
	})
	w.locked(func() { w.current = a })
	config, registry := schedulertest.Config(t), schedulertest.Registry(clock.RealClock{})
	for i, args := range config.Profiles[0].PluginConfig {
		if args.Name == gangpermit.Name {
			config.Profiles[0].PluginConfig[i].Args = &runtime.Unknown{Raw: fmt.Appendf(nil, `{"grace":%q}`, w.grace)}
		}
	}
	if w.hooks != nil {
		schedulertest.PrependPlugin(config, registry, w.hooks)
	}
	w.StartScheduler(ctx, t, a, config, registry)
}

func (w *fakeCluster) locked(f func()) {
	w.store.Lock()
	defer w.store.Unlock()
	f()
}

// serve is the API server for one access.
func (w *fakeCluster) serve(a *access) clienttesting.ReactionFunc {
	stored := fakeserver.Reaction(w.Tracker())
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.store.Lock()
		defer w.store.Unlock()
		binding := bindingOf(action)
		if binding != nil && a.left >= 0 {
			if a.left--; a.left < 0 {
				a.dead, w.hit = true, time.Now()
				a.kill()
			}
		}
		switch {
		case a.dead:
			return true, nil, errors.New("this scheduler is dead")
		case binding != nil:
			return true, binding, w.bind(binding)
		}
		if a.Clientset != nil {
			w.byScheduler(action)
		}
		handled, object, err := stored(action)
		if err == nil {
			w.after(action)
		}
		return handled, object, err
	}
}

func bindingOf(action clienttesting.Action) *corev1.Binding {
	if create, ok := action.(clienttesting.CreateAction); ok && create.GetSubresource() == "binding" {
		binding, _ := create.GetObject().(*corev1.Binding)
		return binding
	}
	return nil
}

// bind is the binding subresource, as the API server has it: it does not look whether the node is there.
func (w *fakeCluster) bind(binding *corev1.Binding) error {
	object, err := w.Tracker().Get(podResource, binding.Namespace, binding.Name)
	if err != nil {
		return err
	}
	pod, _ := object.(*corev1.Pod)
	node := binding.Target.Name
	if binding.UID != pod.UID {
		return apierrors.NewConflict(podResource.GroupResource(), pod.Name, errors.New("it is another pod"))
	}
	if pod.Spec.NodeName != "" {
		w.fault("%s is bound to %s, and now to %s", pod.Name, pod.Spec.NodeName, node)
		return apierrors.NewConflict(podResource.GroupResource(), pod.Name, errors.New("it is bound"))
	}
	if w.refuses != nil {
		if err := w.refuses(pod, node); err != nil {
			return err
		}
	}
	pod.Spec.NodeName = node
	if err := w.Tracker().Update(podResource, pod, pod.Namespace); err != nil {
		return err
	}
	w.RecordBinding(pod.Name, node)
	if j := w.checkBound(pod); j != nil && w.binds != nil {
		w.binds(j, pod)
	}
	return nil
}

// byScheduler checks the writes of a scheduler before they are made. A deletion is an eviction: the pod must have been
// marked.
func (w *fakeCluster) byScheduler(action clienttesting.Action) {
	deletion, ok := action.(clienttesting.DeleteAction)
	if !ok || action.GetResource() != podResource {
		return
	}
	object, err := w.Tracker().Get(podResource, action.GetNamespace(), deletion.GetName())
	if err != nil {
		return
	}
	pod, _ := object.(*corev1.Pod)
	w.evicted = append(w.evicted, pod.Name)
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	}) {
		w.fault("the scheduler deletes %s without the condition DisruptionTarget", pod.Name)
	}
}

// after records the pods that are created and deleted.
func (w *fakeCluster) after(action clienttesting.Action) {
	if action.GetResource() != podResource || action.GetSubresource() != "" {
		return
	}
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		pod, _ := action.GetObject().(*corev1.Pod)
		w.recordMade(pod)
	case clienttesting.DeleteActionImpl:
		w.recordGone(action.GetName())
	}
}

func (w *fakeCluster) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// until lets the Job controller work until something is so.
func (w *fakeCluster) until(t *testing.T, limit time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(slowest * limit); ; time.Sleep(2 * time.Millisecond) {
		if w.recreate(t); w.goesOn != nil {
			w.goesOn(t)
		}
		var is bool
		var faults []string
		w.locked(func() {
			w.judgeAll()
			is, faults = so(), w.faults
		})
		switch {
		case len(faults) > 0:
			t.Fatalf("%s\n%s", strings.Join(faults, "\n"), w.eventLog())
		case is:
			return
		case time.Now().After(end):
			t.Fatalf("not within %v: %s\n%s", slowest*limit, what, w.eventLog())
		}
	}
}

// settled is the time after which nothing is on its way any more that wakes a parked gang without a reason of its own.
const settled = 1500 * time.Millisecond

// passes lets time go by.
func (w *fakeCluster) passes(t *testing.T, d time.Duration) {
	t.Helper()
	end := time.Now().Add(d)
	w.until(t, time.Minute, "time passes", func() bool { return time.Now().After(end) })
}

// hooks is a plugin, the first of its points, that reports the progress of a member to the test. The member waits there
// until the test's function returns.
type hooks struct {
	handle fwk.Handle
	at     func(point string, pod *corev1.Pod, node string)

	mu sync.Mutex
	// back counts the times that members were sent back on their way.
	back int
}

// The points that a member passes, in order.
const (
	atTrial   = "the trial of the plan"
	atPermit  = "Permit"
	atPreBind = "PreBind"
)

func (*hooks) Name() string { return "Hooks" }

func (h *hooks) SetHandle(handle fwk.Handle) { h.handle = handle }

func (h *hooks) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		h.at(atTrial, pod, node)
	}
	return nil
}

func (h *hooks) Unreserve(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ string) {
	if !state.IsPodGroupSchedulingCycle() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.back++
	}
}

func (h *hooks) Permit(
	_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string,
) (*fwk.Status, time.Duration) {
	h.at(atPermit, pod, node)
	return nil, 0
}

func (*hooks) PreBindPreFlight(
	context.Context, fwk.CycleState, *corev1.Pod, string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (h *hooks) PreBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	h.at(atPreBind, pod, node)
	return nil
}

// react waits until the scheduler has seen the deletion of a pod (or, without one, of a node), and gives it a moment to
// send members back because of that, less than a Job controller needs to make the pod again.
func (h *hooks) react(t *testing.T, pod types.UID, node string) {
	t.Helper()
	core := h.handle.SharedInformerFactory().Core().V1()
	seen := func() bool {
		if pod == "" {
			_, err := core.Nodes().Lister().Get(node)
			return apierrors.IsNotFound(err)
		}
		for _, p := range core.Pods().Informer().GetStore().List() {
			if p, ok := p.(*corev1.Pod); ok && p.UID == pod {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(slowest * 5 * time.Second); !seen(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("the scheduler does not see that the object is gone")
			return
		}
	}
	for end := time.Now().Add(rebirth / 2); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if h.sentBack() > 0 {
			return
		}
	}
}

func (h *hooks) sentBack() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.back
}

// serverTimeout returns a client's error when the API server is overloaded.
func serverTimeout() error {
	return apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods/binding"}, "create", 1)
}

// cordon closes or opens a node to new pods.
func (w *fakeCluster) cordon(t *testing.T, name, closed string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%s}}`, closed)
	if _, err := w.CoreV1().
		Nodes().
		Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
