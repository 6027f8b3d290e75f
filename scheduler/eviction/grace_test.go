package eviction_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
)

// A tenant sets any grace period, and deletes his pod with any: others wait for an hour at most.
func TestGrace_IsBounded(t *testing.T) {
	for own, want := range map[int64]time.Duration{
		0: 0, 30: 30 * time.Second, 3600: time.Hour, 3601: time.Hour, math.MaxInt64: time.Hour, -1: 0,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &own}}
		if got := eviction.Grace(pod); got != want {
			t.Errorf("own grace %d: %v, want %v", own, got, want)
		}
	}
	if got := eviction.Grace(&corev1.Pod{}); got != 30*time.Second {
		t.Errorf("without a grace period: %v", got)
	}
	for grace, leaves := range map[int64]bool{0: true, 3600: true, 3601: false, math.MaxInt64: false, math.MinInt64: false} {
		if got := eviction.Leaves(deletedWith(grace)); got != leaves {
			t.Errorf("a pod that was deleted with a grace of %d s leaves: %t, want %t", grace, got, leaves)
		}
	}
	if eviction.Leaves(&corev1.Pod{}) {
		t.Error("a pod that was not deleted leaves")
	}
}

// The API server takes a shorter grace for a pod that is being deleted, if one is given: without one it does nothing.
func TestEvict_ShortensALongGrace(t *testing.T) {
	long := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(math.MaxInt64))}}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want *int64
	}{
		"of a usual pod":             {&corev1.Pod{}, nil},
		"of one with a long grace":   {long, new(int64(3600))},
		"of one that was deleted so": {deletedWith(math.MaxInt64), new(int64(30))},
	} {
		c.pod.Namespace, c.pod.Name = "a", "p"
		client := fake.NewClientset(c.pod)
		if err := eviction.Evict(
			t.Context(),
			client,
			c.pod,
			eviction.Mark{Now: metav1.Now(), Reason: "Preempted"},
		); err != nil {
			t.Fatal(err)
		}
		var got *int64
		for _, action := range client.Actions() {
			if deletion, ok := action.(clienttesting.DeleteActionImpl); ok {
				got = deletion.DeleteOptions.GracePeriodSeconds
			}
		}
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("the eviction %s has grace %v, want %v", name, got, c.want)
		}
	}
}

func deletedWith(grace int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now()), DeletionGracePeriodSeconds: &grace},
	}
}
