package trace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// The rules stop trials of the four sweeps, by a fixed seed: medians stop later, and fewer, than rungs.
func TestSweeps_StopsTrialsEarly(t *testing.T) {
	type sum struct{ trials, stopped, epochs int }
	of := make(map[string]sum)
	epoch := make(map[string]time.Duration)
	tr := trace.Sweeps(1)
	for _, j := range tr.Jobs { // the first trial of a sweep is never stopped
		if strings.HasSuffix(j.ID, "-001") && j.Sweep != "" {
			epoch[j.Sweep] = j.Duration / 40
		}
	}
	for _, j := range tr.Jobs {
		if j.Sweep == "" {
			continue
		}
		s := of[j.Sweep]
		s.trials++
		s.epochs += int(j.Duration / epoch[j.Sweep])
		if j.EndState == trace.Canceled {
			s.stopped++
		} else if j.Duration != 40*epoch[j.Sweep] {
			t.Errorf("%s was not stopped, and runs for %s", j.ID, j.Duration)
		}
		if j.Parallelism != 8 || !strings.HasPrefix(j.Tenant, "tuner-") || j.Estimate != 0 {
			t.Errorf("%+v", j)
		}
		of[j.Sweep] = s
	}
	want := map[string]sum{
		"sweep-1": {64, 37, 1329}, "sweep-2": {64, 49, 896}, "sweep-3": {64, 61, 362}, "sweep-4": {64, 56, 512},
	}
	for name, w := range want {
		if of[name] != w {
			t.Errorf("%s: %+v, want %+v", name, of[name], w)
		}
	}
}
