package incompletegangs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/incompletegangs"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	grace  = time.Minute
	repair = 5 * time.Minute
	// backoff is the longest of a Job.
	backoff = 10 * time.Minute
)

// handle is the scheduler as the watch sees it.
type handle struct {
	fwk.Handle
	*fake.Clientset
	informers informers.SharedInformerFactory
	standsBy  atomic.Bool
	events    *events.FakeRecorder
	// spared counts members whose eviction failed.
	spared int
}

func (h *handle) ClientSet() kubernetes.Interface                        { return h.Clientset }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) EventRecorder() events.EventRecorderLogger              { return h.events }
func (*handle) ProfileName() string                                      { return "lockstep-scheduler" }

// bubble runs a test with a watch and a gang of four that needs three, in time of its own.
func bubble(t *testing.T, pods []*corev1.Pod, test func(t *testing.T, h *handle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		h := &handle{Clientset: fake.NewClientset(), events: events.NewFakeRecorder(100)}
		fakeserver.HonorFields(h.Clientset)
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", UID: "g"}}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}
		if err := h.Tracker().Add(group); err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			p.CreationTimestamp = metav1.NewTime(time.Now().Add(p.CreationTimestamp.Sub(time.Time{})))
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].LastTransitionTime = metav1.Now()
			}
			if err := h.Tracker().Add(p); err != nil {
				t.Fatal(err)
			}
		}
		h.informers = fakeserver.Informers(h.Clientset)
		acts := func() bool { return !h.standsBy.Load() }
		abandon := func(types.NamespacedName, []*corev1.Pod) {}
		if err := incompletegangs.Watch(
			ctx,
			h,
			incompletegangs.Parts{
				Ended:  members.NewEnded(nil),
				Limits: patience.Limits{Grace: grace, Repair: repair},
				Clocks: patience.NewClocks(
					clock.RealClock{},
				),
				Timing:       timing.With(clock.RealClock{}),
				Accelerators: []corev1.ResourceName{"nvidia.com/gpu"},
				Acts:         acts,
				Abandon:      abandon,
				Spare:        func(_ types.NamespacedName, stay []*corev1.Pod) { h.spared += len(stay) },
			},
		); err != nil {
			t.Fatal(err)
		}
		h.informers.Start(ctx.Done())
		h.informers.WaitForCacheSync(ctx.Done())
		synctest.Wait()
		test(t, h)
	})
}

// member is a pod that was made so long after the first one was bound, on a node or on none.
func member(i int, node string, after time.Duration) *corev1.Pod {
	group := "g"
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint("m", i)),
			CreationTimestamp: metav1.NewTime(time.Time{}.Add(after)),
		},
		Spec: corev1.PodSpec{
			SchedulerName: "lockstep-scheduler", NodeName: node,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group},
		},
	}
	if node != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	}
	return p
}

// bind gives a waiting member its node.
func (h *handle) bind(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		p, err := h.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.Spec.NodeName = "node"
		if _, err := h.CoreV1().Pods("ns").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (h *handle) delete(t *testing.T, name string) {
	t.Helper()
	if err := h.CoreV1().Pods("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (h *handle) add(t *testing.T, p *corev1.Pod) {
	t.Helper()
	p.CreationTimestamp = metav1.Now()
	if _, err := h.CoreV1().Pods("ns").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func complete(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodSucceeded
	return p
}

// left returns the number of members that exist, and the order in which the API was asked to change evicted ones.
func (h *handle) left(t *testing.T) int {
	t.Helper()
	synctest.Wait()
	pods, err := h.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(pods.Items)
}

func fresh() []*corev1.Pod {
	return []*corev1.Pod{member(0, "", -1), member(1, "", -1), member(2, "", -1), member(3, "", -1)}
}

func TestIncompleteGangs_EvictedAfterGrace(t *testing.T) {
	bubble(t, fresh(), func(t *testing.T, h *handle) {
		t.Helper()
		h.bind(t, "m0", "m1")
		time.Sleep(grace - time.Second)
		if n := h.left(t); n != 4 {
			t.Fatalf("within the grace %d members are left", n)
		}
		h.ClearActions()
		time.Sleep(2 * time.Second)
		if n := h.left(t); n != 2 {
			t.Fatalf("after the grace %d members are left, want those that are not bound", n)
		}
		var did []string
		for _, a := range h.Actions() {
			if verb := a.GetVerb(); verb == "patch" || verb == "delete" {
				did = append(did, verb+" "+a.GetResource().Resource)
			}
		}
		if fmt.Sprint(did) != "[patch podgroups patch pods delete pods patch pods delete pods]" {
			t.Errorf("a gang and a member must be marked before they are deleted: %q", did)
		}
	})
}

func TestIncompleteGangs_CompletedGangStays(t *testing.T) {
	bubble(t, fresh(), func(t *testing.T, h *handle) {
		t.Helper()
		h.bind(t, "m0", "m1")
		time.Sleep(grace / 2)
		h.bind(t, "m2")
		if err := h.CoreV1().Pods("ns").Delete(t.Context(), "m1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(repair - time.Second) // it was whole: its job decides about it now
		if n := h.left(t); n != 3 {
			t.Errorf("%d members are left", n)
		}
	})
}

// A gang of four that needs three lost one that it needs. The state of its replacement decides whether the others stay.
func TestIncompleteGangs_UnrepairedGangIsEvicted(t *testing.T) {
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		do   func(t *testing.T, h *handle)
		want int
	}{
		"the new member gets no node": {fresh(), func(*testing.T, *handle) {}, 1},
		"the new member gets one in time": {fresh(), func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m3")
		}, 3},
		"there is no new member": {fresh()[:3], func(*testing.T, *handle) {}, 2},
		"it lost one, got one, and lost one again": {fresh(), func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m3")
			time.Sleep(repair / 2)
			h.delete(t, "m3")
			h.add(t, member(4, "", 0))
		}, 3},
		"one of the others has succeeded": {fresh(), func(t *testing.T, h *handle) {
			t.Helper()
			h.add(t, complete(member(5, "node", 0)))
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.pods, func(t *testing.T, h *handle) {
				t.Helper()
				h.bind(t, "m0", "m1", "m2")
				time.Sleep(10 * grace)
				h.delete(t, "m1")
				time.Sleep(repair / 2)
				test.do(t, h)
				time.Sleep(repair/2 + time.Second)
				if n := h.left(t); n != test.want {
					t.Errorf("%d members are left, want %d", n, test.want)
				}
			})
		})
	}
}

// controlled has a Job control a pod.
func controlled(p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "j", Controller: new(true)},
	}
	return p
}

// job has a Job control all pods, with that number of succeeded ones. The Job does not exist if that is negative.
func (h *handle) job(t *testing.T, pods []*corev1.Pod, succeeded int32) {
	t.Helper()
	for _, p := range pods {
		if _, err := h.CoreV1().Pods("ns").Update(t.Context(), controlled(p), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if succeeded < 0 {
		return
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "j"}}
	job.Status.Succeeded = succeeded
	if _, err := h.BatchV1().Jobs("ns").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// succeed has a member succeed and its pod deleted, as for one with a time to live.
func (h *handle) succeed(t *testing.T, name string) {
	t.Helper()
	p, err := h.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodSucceeded
	if _, err := h.CoreV1().Pods("ns").UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	h.delete(t, name)
}

// A gang of three loses one that its job does not make again: the others are evicted when no backoff can be the reason
// any more. One that has succeeded need not be made again, whether the scheduler saw it or only the Job knows.
func TestIncompleteGangs_UnreplacedMemberEvictsGang(t *testing.T) {
	lose := func(t *testing.T, h *handle) { t.Helper(); h.delete(t, "m1") }
	for name, test := range map[string]struct {
		succeeded int32
		do        func(t *testing.T, h *handle)
		want      int
	}{
		"a member is lost":                              {0, lose, 0},
		"a member is lost, and there is no Job":         {-1, lose, 0},
		"a member succeeds and is deleted":              {-1, func(t *testing.T, h *handle) { t.Helper(); h.succeed(t, "m1") }, 2},
		"a member is gone that succeeded, says its Job": {1, lose, 2},
		"a member succeeds, and another is lost": {1, func(t *testing.T, h *handle) {
			t.Helper()
			h.succeed(t, "m1")
			h.delete(t, "m0")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fresh()[:3], func(t *testing.T, h *handle) {
				t.Helper()
				h.bind(t, "m0", "m1", "m2")
				list, err := h.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var pods []*corev1.Pod
				for i := range list.Items {
					pods = append(pods, &list.Items[i])
				}
				h.job(t, pods, test.succeeded)
				time.Sleep(time.Hour)
				test.do(t, h)
				time.Sleep(backoff + repair - time.Second)
				if n := h.left(t); n < 1 {
					t.Fatalf("within the longest backoff, %d members are left", n)
				}
				time.Sleep(grace + 2*time.Second)
				if n := h.left(t); n != test.want {
					t.Errorf("%d members are left, want %d", n, test.want)
				}
			})
		})
	}
}

// The API server does not answer when survivors are evicted: it is tried again, and until then they count as there.
func TestIncompleteGangs_FailedEvictionIsRetried(t *testing.T) {
	bubble(t, fresh(), func(t *testing.T, h *handle) {
		t.Helper()
		h.bind(t, "m0", "m1", "m2")
		time.Sleep(10 * grace)
		var down atomic.Bool
		down.Store(true)
		h.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, apierrors.NewInternalError(errors.New("no leader"))
		})
		h.delete(t, "m1")
		time.Sleep(repair + time.Second)
		if n := h.left(t); n != 3 || h.spared != 2 {
			t.Errorf("%d members are left, and %d spared", n, h.spared)
		}
		down.Store(false)
		time.Sleep(grace + time.Second)
		if n := h.left(t); n != 1 {
			t.Errorf("%d members are left, want the one that waits", n)
		}
	})
}

// After a restart only the pods themselves say whether a gang was whole.
func TestIncompleteGangs_FoundAfterRestart(t *testing.T) {
	for name, test := range map[string]struct {
		pods  []*corev1.Pod
		after time.Duration
		want  int
	}{
		"its start was cut off": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "node", -1), member(2, "", -1)}, 2 * grace, 1,
		},
		"its start was cut off, and it lost a member": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "", -1), member(2, "", time.Minute)}, 2 * grace, 2,
		},
		"it lost a member": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "node", -1), member(2, "", time.Minute)}, repair, 3,
		},
		"it lost a member, and its job has made no other yet": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "node", -1)}, 2 * grace, 2,
		},
		"it lost a member, and its Job makes no other": {
			[]*corev1.Pod{controlled(member(0, "node", -1)), controlled(member(1, "node", -1))}, repair + backoff + 3*grace, 0,
		},
		"it lacks a member, and nobody can tell whether that has succeeded": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "node", -1)}, 2 * (repair + backoff), 2,
		},
		"it lost a member long ago": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "node", -1), member(2, "", time.Minute)}, repair + 2*grace, 1,
		},
		"it is whole": {
			[]*corev1.Pod{member(0, "node", -1), member(1, "node", -1), member(2, "node", -1), member(3, "", -1)}, 2 * repair, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.pods, func(t *testing.T, h *handle) {
				t.Helper()
				time.Sleep(test.after)
				if n := h.left(t); n != test.want {
					t.Errorf("%d members are left, want %d", n, test.want)
				}
			})
		})
	}
}

// refuse has the kubelet of its node refuse a member, which may have got that node in the same moment.
func (h *handle) refuse(t *testing.T, name string) {
	t.Helper()
	p, err := h.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.NodeName = "node"
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfnvidia.com/gpu"
	if _, err := h.CoreV1().Pods("ns").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A kubelet refuses a member of a gang that is starting: the others are sent back with it.
func TestIncompleteGangs_RefusedMemberEvictsGang(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(t *testing.T, h *handle)
		want    int
	}{
		"while it starts": {func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m0", "m1", "m2")
			time.Sleep(time.Second)
			h.refuse(t, "m2")
		}, 1},
		"long after its start": {func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m0", "m1", "m2")
			time.Sleep(2 * grace)
			h.refuse(t, "m2")
		}, 4},
		"before any binding is seen": {func(t *testing.T, h *handle) {
			t.Helper()
			h.refuse(t, "m2")
			h.bind(t, "m0", "m1")
			time.Sleep(time.Second)
		}, 1},
		"two, and its next start has begun before the second is seen": {func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m0", "m1", "m2")
			h.refuse(t, "m2")
			for i := 4; i < 7; i++ {
				h.add(t, member(i, "", 0))
			}
			h.bind(t, "m4", "m5", "m6")
			again := member(1, "node", 0)
			again.Status.Phase, again.Status.Reason = corev1.PodFailed, "OutOfnvidia.com/gpu"
			h.add(t, again)
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fresh(), func(t *testing.T, h *handle) {
				t.Helper()
				c.happens(t, h)
				if n := h.left(t); n != c.want {
					t.Errorf("%d members are left, want %d", n, c.want)
				}
			})
		})
	}
}

// A standby scheduler evicts no pod; when it has taken over, it does.
func TestIncompleteGangs_StandbyEvictsNothing(t *testing.T) {
	bubble(t, fresh(), func(t *testing.T, h *handle) {
		t.Helper()
		h.standsBy.Store(true)
		h.bind(t, "m0", "m1")
		time.Sleep(5 * grace)
		if n := h.left(t); n != 4 {
			t.Fatalf("standing by, %d members are left", n)
		}
		h.standsBy.Store(false)
		time.Sleep(2 * grace)
		if n := h.left(t); n != 2 {
			t.Errorf("having taken over, %d members are left, want those that are not bound", n)
		}
	})
}

// resize has the gang need another number of members.
func (h *handle) resize(t *testing.T, members int32) {
	t.Helper()
	group, err := h.SchedulingV1beta1().PodGroups("ns").Get(t.Context(), "g", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	group.Spec.SchedulingPolicy.Gang.MinCount = members
	if _, err := h.SchedulingV1beta1().PodGroups("ns").Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A gang of three that runs now needs four. The fourth gets no node: all of it starts again, with four. With the
// fourth, or if it needs three again, it is left alone.
func TestIncompleteGangs_RaisedMinCount(t *testing.T) {
	for name, c := range map[string]struct {
		then func(t *testing.T, h *handle)
		left int
	}{
		"and gets no node":       {func(*testing.T, *handle) {}, 1},
		"and gets its node":      {func(t *testing.T, h *handle) { t.Helper(); h.bind(t, "m3") }, 4},
		"and shrinks again":      {func(t *testing.T, h *handle) { t.Helper(); h.resize(t, 3) }, 4},
		"and its job waits, too": {func(t *testing.T, h *handle) { t.Helper(); h.delete(t, "m3") }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fresh(), func(t *testing.T, h *handle) {
				t.Helper()
				h.bind(t, "m0", "m1", "m2")
				time.Sleep(time.Hour)
				h.resize(t, 4)
				time.Sleep(repair - time.Second)
				c.then(t, h)
				time.Sleep(2 * repair)
				if n := h.left(t); n != c.left {
					t.Errorf("%d members are left, want %d", n, c.left)
				}
			})
		})
	}
}
