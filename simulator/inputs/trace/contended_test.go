package trace_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Six jobs; those at 100 s, 110 s and 115 s request most in the shortest time.
func TestTrace_Contended(t *testing.T) {
	var all trace.Trace
	for i, at := range []int{0, 10, 100, 110, 115, 500} {
		gpus := 1
		if at >= 100 {
			gpus = 8
		}
		all.Jobs = append(all.Jobs, trace.Job{
			ID: string(rune('a' + i)), Submit: time.Duration(at) * time.Second, Duration: time.Hour,
			Podsets: []trace.Podset{{Count: 1, GPUs: gpus}},
		})
	}
	got := all.Contended(3)
	var names []string
	for _, j := range got.Jobs {
		names = append(names, j.ID)
	}
	if !slices.Equal(names, []string{"c", "d", "e"}) || got.Jobs[0].Submit != 0 ||
		got.Jobs[2].Submit != 15*time.Second {
		t.Errorf("the stretch is %s from %s to %s", names, got.Jobs[0].Submit, got.Jobs[len(got.Jobs)-1].Submit)
	}
	if all.Jobs[2].Submit != 100*time.Second {
		t.Error("the trace has changed")
	}
	if whole := all.Contended(6); len(whole.Jobs) != 6 || whole.Jobs[5].Submit != 500*time.Second {
		t.Error("a trace that is short enough is not itself")
	}
}
