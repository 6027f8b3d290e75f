package direct_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// use adds up the capacity in use, and the waits of the small jobs, over the time from one instant to another.
type use struct {
	scene    *scenario.Scenario
	from, to time.Duration
	now      time.Duration
	used     int64
	busy     float64
	waited   time.Duration
	started  []time.Duration
	ended    []time.Duration
}

func (u *use) Decides(engine.Decision) {}

func (u *use) Happens(e engine.Event) {
	if seconds := (min(e.At, u.to) - max(u.now, u.from)).Seconds(); seconds > 0 {
		u.busy += seconds * float64(u.used)
	}
	u.now = e.At
	switch e.Kind {
	case engine.Started:
		u.used += u.scene.Jobs[e.Job].Accelerators
		u.started[e.Job] = e.At
		if e.Job > 1 {
			u.waited += e.At - u.scene.Jobs[e.Job].Submit
		}
	case engine.Ended:
		u.used -= u.scene.Jobs[e.Job].Accelerators
		u.ended[e.Job] = e.At
	default:
	}
}

// One job with an unknown end runs on one GPU for ten days. A gang of all 64 nodes waits for it, and 2,000 jobs of a
// node arrive over two days; each of them ends within an hour. With a place reserved until that end, the fleet would be
// idle for ten days.
func TestEngine_UnknownEndDoesNotIdleTheFleet(t *testing.T) {
	const day, small = 24 * time.Hour, 2000
	endless := comes("endless", 1, 0, int(10*day/time.Second), 0)
	endless.Gang.Shapes[0].Demand[0], endless.Accelerators = 1, 1
	s := whole(t, 64, endless, comes("whole", 64, 600, 3600, 0))
	for i := range small {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("small%04d", i), 1, 1200+i*2*86400/small, 3600, 3600))
	}
	n := len(s.Jobs)
	u := &use{
		scene: s, from: 20 * time.Minute, to: 20*time.Minute + 2*day,
		started: make([]time.Duration, n), ended: make([]time.Duration, n),
	}
	if err := direct.NewEngine(direct.Options{Preempt: true}, still).Run(t.Context(), s, u); err != nil {
		t.Fatal(err)
	}
	inUse, wait := u.busy/(2*day).Seconds()/512, u.waited/small
	t.Logf("%.1f %% in use, mean wait %s, the gang starts %s after the end", 100*inUse, wait, u.started[1]-u.ended[0])
	if inUse < 0.6 || wait > 5*time.Minute {
		t.Errorf("%.3f in use, want 0.6; mean wait %s, want 5m at most", inUse, wait)
	}
	if late := u.started[1] - u.ended[0]; late < 0 || late > time.Minute {
		t.Errorf("the gang starts %s after the end of the last job in its place", late)
	}
}
