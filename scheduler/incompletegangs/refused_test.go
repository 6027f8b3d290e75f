package incompletegangs_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
