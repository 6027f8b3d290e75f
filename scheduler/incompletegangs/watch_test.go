package incompletegangs_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

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
