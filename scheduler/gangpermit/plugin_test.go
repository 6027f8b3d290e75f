package gangpermit_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// fakeCluster is the scheduler as the plugin sees it, for one gang.
type fakeCluster struct {
	fwk.Handle
	client      *fake.Clientset
	minCount    int32
	annotations map[string]string
	all         sets.Set[types.UID]
	assigned    sets.Set[types.UID]
	permitted   sync.Mutex // for waiting, which the plugin's timers read
	waiting     map[types.UID]*waiting
	binder      binder
	factory     informers.SharedInformerFactory
}

func (w *fakeCluster) ProfileName() string             { return "lockstep-scheduler" }
func (w *fakeCluster) ClientSet() kubernetes.Interface { return w.client }

type waiting struct {
	fwk.WaitingPod
	pod               *corev1.Pod
	allowed, rejected atomic.Bool
}

func (w *waiting) GetPod() *corev1.Pod { return w.pod }
func (w *waiting) Allow(string)        { w.allowed.Store(true) }
func (w *waiting) Reject(string, string) bool {
	w.rejected.Store(!w.allowed.Load())
	return w.rejected.Load()
}

func (w *fakeCluster) PodGroupManager() fwk.PodGroupManager                   { return manager{w} }
func (w *fakeCluster) SharedInformerFactory() informers.SharedInformerFactory { return w.factory }

func (w *fakeCluster) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	w.permitted.Lock()
	defer w.permitted.Unlock()
	if pod, ok := w.waiting[uid]; ok {
		return pod
	}
	return nil
}

type manager struct{ *fakeCluster }

func (m manager) PodGroups() fwk.PodGroupLister                             { return groups(m) }
func (m manager) PodGroupStates() fwk.PodGroupStateLister                   { return states(m) }
func (m manager) CompositePodGroupStates() fwk.CompositePodGroupStateLister { return nil }
func (m manager) CompositePodGroups() fwk.CompositePodGroupLister           { return nil }
func (m manager) BuildHierarchySnapshotFromPod(*corev1.Pod) (fwk.PodGroupManager, error) {
	return nil, errors.ErrUnsupported
}

func (m manager) GetRootKeyForGroup(key fwk.EntityKey) (fwk.EntityKey, bool, error) {
	return key, true, nil
}

type groups struct{ *fakeCluster }

func (g groups) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "g-uid", Annotations: g.annotations},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: g.minCount},
		}},
	}, nil
}

type states struct{ *fakeCluster }

func (s states) Get(string, string) (fwk.PodGroupState, error) {
	return state{fakeCluster: s.fakeCluster}, nil
}

type state struct {
	fwk.PodGroupState
	*fakeCluster
}

func (s state) AllPods() sets.Set[types.UID]      { return s.all.Clone() }
func (s state) ScheduledPodsCount() int           { return s.all.Len() }
func (s state) AssignedPods() sets.Set[types.UID] { return s.assigned.Clone() }

// cycle is the state of a call: of the group's cycle, or of the binding of one pod.
type cycle struct {
	fwk.CycleState
	group bool
}

func (c cycle) IsPodGroupSchedulingCycle() bool { return c.group }

func newFakeCluster(t *testing.T, minCount int32, bound ...int) (*fakeCluster, *gangpermit.GangPermit) {
	t.Helper()
	w := &fakeCluster{
		minCount: minCount,
		all:      sets.New[types.UID](),
		assigned: sets.New[types.UID](),
		waiting:  make(map[types.UID]*waiting),
		client:   fake.NewClientset(),
	}
	w.factory = informers.NewSharedInformerFactory(w.client, 0)
	core := w.factory.Core().V1() // never started: its stores hold only the objects added here
	for i := range 10 {
		w.all.Insert(member(i).UID)
		if err := core.Pods().Informer().GetStore().Add(member(i)); err != nil {
			t.Fatal(err)
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if err := core.Nodes().Informer().GetStore().Add(node); err != nil {
		t.Fatal(err)
	}
	for _, i := range bound {
		w.assigned.Insert(member(i).UID)
	}
	factory := gangpermit.New(w.newBinder, nil, func() bool { return true }, timing.With(clock.RealClock{}))
	plugin, err := factory(t.Context(), nil, w)
	if err != nil {
		t.Fatal(err)
	}
	return w, plugin.(*gangpermit.GangPermit)
}

func member(i int) *corev1.Pod {
	group := "g"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint("m", i))},
		Spec:       corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group}},
	}
}

// submit runs one cycle's Permit for the members and returns the codes; a member that must wait, waits.
func (w *fakeCluster) submit(t *testing.T, plugin *gangpermit.GangPermit, members ...int) []fwk.Code {
	t.Helper()
	plugin.Reserve(t.Context(), cycle{group: true}, member(members[0]), "node")
	plugin.Unreserve(t.Context(), cycle{group: true}, member(members[0]), "node")
	return w.permit(t, plugin, members...)
}

func (w *fakeCluster) permit(t *testing.T, plugin *gangpermit.GangPermit, members ...int) []fwk.Code {
	t.Helper()
	var codes []fwk.Code
	for _, i := range members {
		status, timeout := plugin.Permit(t.Context(), cycle{}, member(i), "node")
		if status.IsWait() {
			if timeout != 15*time.Minute {
				t.Errorf("timeout is %v", timeout)
			}
			w.permitted.Lock()
			w.waiting[member(i).UID] = &waiting{pod: member(i)}
			w.permitted.Unlock()
		}
		codes = append(codes, status.Code())
	}
	return codes
}

// end runs the binding goroutine of a waiting pod to its end once the pod is rejected.
func (w *fakeCluster) end(t *testing.T, plugin *gangpermit.GangPermit, i int) {
	t.Helper()
	w.permitted.Lock()
	delete(w.waiting, member(i).UID)
	w.permitted.Unlock()
	plugin.Unreserve(t.Context(), cycle{}, member(i), "node")
}

func TestGangPermit_MembersStartTogether(t *testing.T) {
	tests := map[string]struct {
		minCount int32
		bound    []int
		members  []int
		want     []fwk.Code
	}{
		"all": {
			minCount: 3,
			members:  []int{0, 1, 2},
			want:     []fwk.Code{fwk.Wait, fwk.Wait, fwk.Success},
		},
		"more than needed": {
			minCount: 2,
			members:  []int{0, 1, 2},
			want:     []fwk.Code{fwk.Wait, fwk.Success, fwk.Success},
		},
		"a replacement": {minCount: 3, bound: []int{0, 1}, members: []int{2}, want: []fwk.Code{fwk.Success}},
		"two replacements": {
			minCount: 3,
			bound:    []int{0},
			members:  []int{1, 2},
			want:     []fwk.Code{fwk.Wait, fwk.Success},
		},
		"after the gang started": {
			minCount: 1,
			bound:    []int{0, 1},
			members:  []int{2, 3},
			want:     []fwk.Code{fwk.Success, fwk.Success},
		},
		"one too few, never goes": {minCount: 3, members: []int{0, 1}, want: []fwk.Code{fwk.Wait, fwk.Wait}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, plugin := newFakeCluster(t, test.minCount, test.bound...)
			got := w.submit(t, plugin, test.members...)
			if !slices.Equal(got, test.want) {
				t.Fatalf("codes are %v, want %v", got, test.want)
			}
			goes := slices.Contains(got, fwk.Success)
			for uid, pod := range w.waiting {
				if pod.allowed.Load() != goes || pod.rejected.Load() {
					t.Errorf("%s: allowed %v, rejected %v", uid, pod.allowed.Load(), pod.rejected.Load())
				}
			}
		})
	}
}

func TestGangPermit_OtherPodsDoNotWait(t *testing.T) {
	_, plugin := newFakeCluster(t, 3)
	if status, _ := plugin.Permit(t.Context(), cycle{}, &corev1.Pod{}, "node"); !status.IsSuccess() {
		t.Errorf("status is %v", status)
	}
}

func TestGangPermit_LostMemberRejectsGang(t *testing.T) {
	w, plugin := newFakeCluster(t, 4)
	w.submit(t, plugin, 0, 1)
	w.end(t, plugin, 2) // its Reserve failed: it never reached Permit
	for uid, pod := range w.waiting {
		if !pod.rejected.Load() {
			t.Errorf("%s still waits", uid)
		}
	}
	// The rest of the cycle is rejected, also while the rejected ones have not left yet.
	if got := w.permit(t, plugin, 3, 4); !slices.Equal(got, []fwk.Code{fwk.Unschedulable, fwk.Unschedulable}) {
		t.Errorf("codes are %v", got)
	}
	w.end(t, plugin, 0)

	// The next cycle is not disturbed by a goroutine of the last one.
	got := w.submit(t, plugin, 0, 2)
	w.end(t, plugin, 1)
	got = append(got, w.permit(t, plugin, 3, 4)...)
	if want := []fwk.Code{fwk.Wait, fwk.Wait, fwk.Wait, fwk.Success}; !slices.Equal(got, want) {
		t.Errorf("codes of the second cycle are %v, want %v", got, want)
	}
}

// A member may be lost before any other has arrived at the barrier: the others must not wait for it.
func TestGangPermit_LossBeforePermitRejectsGang(t *testing.T) {
	w, plugin := newFakeCluster(t, 3)
	plugin.Unreserve(t.Context(), cycle{}, member(0), "node")
	want := []fwk.Code{fwk.Unschedulable, fwk.Unschedulable}
	if got := w.permit(t, plugin, 1, 2); !slices.Equal(got, want) {
		t.Errorf("the others are told %v, want %v", got, want)
	}
}

func TestGangPermit_TimeoutRejectsGang(t *testing.T) {
	w, plugin := newFakeCluster(t, 3)
	w.submit(t, plugin, 0, 1)
	w.end(t, plugin, 0) // the framework rejected it and forgot that it waited
	if !w.waiting[member(1).UID].rejected.Load() {
		t.Error("the other member still waits")
	}
	w.end(t, plugin, 1)
	if got := w.submit(t, plugin, 0, 1, 2); !slices.Equal(got, []fwk.Code{fwk.Wait, fwk.Wait, fwk.Success}) {
		t.Errorf("codes of the next cycle are %v", got)
	}
}

func TestGangPermit_RejectedWaiterRejectsGang(t *testing.T) {
	w, plugin := newFakeCluster(t, 3)
	w.submit(t, plugin, 0, 1)
	delete(w.waiting, member(0).UID) // rejected; its Unreserve is on the way
	if got := w.permit(t, plugin, 2); !slices.Equal(got, []fwk.Code{fwk.Unschedulable}) {
		t.Errorf("code is %v", got)
	}
	if pod := w.waiting[member(1).UID]; pod.allowed.Load() || !pod.rejected.Load() {
		t.Errorf("the other member: allowed %v, rejected %v", pod.allowed.Load(), pod.rejected.Load())
	}
}

func TestGangPermit_AllowedMembersCountUntilDeleted(t *testing.T) {
	w, plugin := newFakeCluster(t, 2)
	w.submit(t, plugin, 0, 1) // both go; their bindings are not confirmed yet
	if got := w.submit(t, plugin, 2); !slices.Equal(got, []fwk.Code{fwk.Success}) {
		t.Errorf("a late member: %v", got)
	}
	w.all = sets.New(member(3).UID, member(4).UID) // all were deleted and made anew
	if got := w.submit(t, plugin, 3, 4); !slices.Equal(got, []fwk.Code{fwk.Wait, fwk.Success}) {
		t.Errorf("the gang made anew: %v", got)
	}
}

// A member that is about to be evicted does not count. It counts again if its eviction fails: the others would wait for
// one that never arrives.
func TestGangPermit_FailedEvictionCountsMember(t *testing.T) {
	gang := types.NamespacedName{Namespace: "ns", Name: "g"}
	for name, test := range map[string]struct {
		spared bool
		want   []fwk.Code
	}{
		"it leaves": {false, []fwk.Code{fwk.Wait, fwk.Wait}},
		"it stays":  {true, []fwk.Code{fwk.Wait, fwk.Success}},
	} {
		t.Run(name, func(t *testing.T) {
			w, plugin := newFakeCluster(t, 3, 0)
			gangpermit.Abandon(plugin, gang, []*corev1.Pod{member(0)})
			if test.spared {
				gangpermit.Spare(plugin, gang, []*corev1.Pod{member(0)})
			}
			if got := w.submit(t, plugin, 1, 2); !slices.Equal(got, test.want) {
				t.Errorf("the others: %v, want %v", got, test.want)
			}
		})
	}
}
