package incompletegangs_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/topology"
)

// final has the owner of the gang create no member again.
func (h *handle) final(t *testing.T) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, topology.AnnotationOnLoss, topology.OnLossGone)
	groups := h.SchedulingV1beta1().PodGroups("ns")
	if _, err := groups.Patch(t.Context(), "g", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A gang whose members nothing would create again retains its nodes, however many members it lacks, and an Event
// reports that.
func TestWatch_SparesFinalGangs(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(t *testing.T, h *handle)
		left int
		says string
	}{
		"half started": {func(t *testing.T, h *handle) { t.Helper(); h.bind(t, "m0", "m1") }, 4, "GangIncomplete"},
		"a member is lost": {func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m0", "m1", "m2")
			time.Sleep(time.Hour)
			h.delete(t, "m1")
		}, 3, "GangNotRepaired"},
		"a member is refused": {func(t *testing.T, h *handle) {
			t.Helper()
			h.bind(t, "m0", "m1", "m2")
			pod, err := h.CoreV1().Pods("ns").Get(t.Context(), "m2", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "OutOfnvidia.com/gpu"
			if _, err := h.CoreV1().Pods("ns").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}, 4, "GangMemberRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fresh(), func(t *testing.T, h *handle) {
				t.Helper()
				h.final(t)
				test.do(t, h)
				time.Sleep(backoff + repair + time.Hour)
				if left := h.left(t); left != test.left {
					t.Errorf("%d members are left, want %d", left, test.left)
				}
				select {
				case said := <-h.events.Events:
					if !strings.Contains(said, test.says) ||
						!strings.Contains(said, "nothing would create them again") {
						t.Errorf("it says %q", said)
					}
				default:
					t.Error("nothing is said")
				}
			})
		})
	}
}
