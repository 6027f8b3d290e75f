package incompletegangs_test

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
