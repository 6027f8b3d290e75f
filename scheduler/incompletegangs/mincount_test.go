package incompletegangs_test

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
