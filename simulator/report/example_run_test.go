package report_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/measure"
	"github.com/lockstep-project/lockstep/simulator/report"
	"github.com/lockstep-project/lockstep/simulator/scene"
	"github.com/lockstep-project/lockstep/simulator/trace"
)

// both tells two watchers.
type both struct{ one, other engine.Watcher }

func (b both) Happens(e engine.Event)    { b.one.Happens(e); b.other.Happens(e) }
func (b both) Decides(d engine.Decision) { b.one.Decides(d); b.other.Decides(d) }

// workload is a trace of some days with failures on a fleet.
func workload(t *testing.T, fleetName, traceName string, days int, load float64) *scene.Scene {
	t.Helper()
	f, err := fleet.Open(fleetName)
	if err != nil {
		t.Fatal(err)
	}
	work, err := trace.Open(traceName, 1)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Duration(days) * 24 * time.Hour
	for i, job := range work.Jobs {
		if job.Submit > end {
			work.Jobs = work.Jobs[:i]
			break
		}
	}
	for i := range 12 {
		at := end * time.Duration(i+1) / 14
		node := f.Nodes[(i*211+17)%len(f.Nodes)].Name
		kind := trace.Fail
		if i%4 == 3 {
			kind = trace.Drain
		}
		work.Events = append(work.Events, trace.Event{At: at, Kind: kind, Nodes: []string{node}})
		if i%3 > 0 {
			work.Events = append(work.Events, trace.Event{At: at + 10*time.Hour, Kind: trace.Return, Nodes: []string{node}})
		}
	}
	slices.SortStableFunc(work.Events, func(a, b trace.Event) int { return cmp.Compare(a.At, b.At) })
	s, err := scene.New(f, work, scene.Options{Seed: 1, Load: load})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// input is what the engine makes of a scene.
func input(t *testing.T, s *scene.Scene, o direct.Options, scheduler string) report.Input {
	t.Helper()
	tally := measure.New(s, measure.Header{
		Scheduler: scheduler, Engine: "direct", Commit: "0123456789ab", ConfigHash: "fedcba98",
		TieRule: "least fragmentation left behind, then the first by name", Machine: "2 cores, the machine of this test",
	})
	record := report.NewRecorder(s)
	began := time.Now()
	if err := direct.NewEngine(o, clock.RealClock{}).Run(t.Context(), s, both{tally, record}); err != nil {
		t.Fatal(err)
	}
	return report.Input{
		Card: tally.Scorecard(time.Since(began)), Series: tally.Series(), Outcomes: tally.Outcomes(), Record: record,
	}
}
