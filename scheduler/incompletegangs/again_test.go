package incompletegangs_test

import (
	"testing"
	"time"
)

// A gang that was whole and lost all its members starts again under the same PodGroup. That start has the patience of a
// first one: each binding is progress, and a start that makes none ends after the grace.
func TestIncompleteGangs_AnotherStartIsJudgedAsOne(t *testing.T) {
	for name, test := range map[string]struct {
		slow bool // the second member is bound, too
		left int
	}{
		"with progress":    {true, 3},
		"without progress": {false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fresh(), func(t *testing.T, h *handle) {
				t.Helper()
				h.bind(t, "m0", "m1", "m2")
				time.Sleep(10 * grace)
				for _, name := range []string{"m0", "m1", "m2", "m3"} {
					h.delete(t, name)
				}
				time.Sleep(10 * grace)
				for i := 4; i < 7; i++ {
					h.add(t, member(i, "", 0))
				}
				h.bind(t, "m4")
				time.Sleep(grace - 20*time.Second)
				if test.slow {
					h.bind(t, "m5")
				}
				time.Sleep(30 * time.Second)
				if n := h.left(t); n != test.left {
					t.Errorf("%d members are left, want %d", n, test.left)
				}
			})
		})
	}
}
