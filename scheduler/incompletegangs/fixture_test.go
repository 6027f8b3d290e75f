package incompletegangs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
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

// controlled has a Job control a pod.
func controlled(p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "j", Controller: new(true)},
	}
	return p
}
