package report_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/report"
)

// both notifies two watchers.
type both struct{ one, other engine.Watcher }

func (b both) Happens(e engine.Event)    { b.one.Happens(e); b.other.Happens(e) }
func (b both) Decides(d engine.Decision) { b.one.Decides(d); b.other.Decides(d) }

// eventLog records the events.
type eventLog struct{ events []engine.Event }

func (s *eventLog) Happens(e engine.Event) {
	e.Nodes = slices.Clone(e.Nodes)
	s.events = append(s.events, e)
}

func (*eventLog) Decides(engine.Decision) {}

func (s *eventLog) last() time.Duration { return s.events[len(s.events)-1].At }

// holders are the accelerators that each job has of each node at an instant, after all that happens then.
func (s *eventLog) holders(of *scenario.Scenario, at time.Duration) map[int]map[int]int {
	holds := make(map[int]map[int]int)
	for _, e := range s.events {
		switch {
		case e.At > at:
			return holds
		case e.Kind == engine.Started:
			holds[e.Job] = make(map[int]int)
			for rank, node := range e.Nodes {
				gang := &of.Jobs[e.Job].Gang
				holds[e.Job][node] += int(gang.Shapes[gang.Members[rank].Shape].Demand[of.Accelerator])
			}
		case e.Kind == engine.Ended, e.Kind == engine.Preempted, e.Kind == engine.Disrupted:
			delete(holds, e.Job)
		}
	}
	return holds
}

// still is a clock that stands.
func still() clock.PassiveClock { return clocktesting.NewFakePassiveClock(time.Unix(0, 0)) }

// short is a busy day on the default fleet, with two failures and a drain.
func short(t *testing.T) *scenario.Scenario {
	t.Helper()
	f, err := fleet.Open("gb200-72")
	if err != nil {
		t.Fatal(err)
	}
	work := trace.Trace{Name: "short", Source: "this test", Synthetic: true}
	for i := range 120 {
		work.Jobs = append(work.Jobs, trace.Job{
			ID: fmt.Sprintf("job-%03d", i), Tenant: "research", Submit: time.Duration(i) * 10 * time.Minute,
			Duration: time.Duration(20+i%7*25) * time.Minute,
			Podsets:  []trace.Podset{{Count: []int{1, 2, 1, 8, 1, 18, 4, 40}[i%8], GPUs: 1 + i%4}},
		})
	}
	work.Events = []trace.Event{
		{At: 2 * time.Hour, Kind: trace.Fail, Nodes: []string{f.Nodes[0].Name}},
		{At: 5 * time.Hour, Kind: trace.Return, Nodes: []string{f.Nodes[0].Name}},
		{At: 6 * time.Hour, Kind: trace.Fail, Nodes: []string{f.Nodes[40].Name}},
		{At: 7 * time.Hour, Kind: trace.Drain, Nodes: []string{f.Nodes[20].Name}},
	}
	return made(t, f, work)
}

// many is a scene of small gangs on 576 nodes.
func many(t *testing.T, jobs int) *scenario.Scenario {
	t.Helper()
	f, err := fleet.Open("c3")
	if err != nil {
		t.Fatal(err)
	}
	work := trace.Trace{Name: "many"}
	for i := range jobs {
		work.Jobs = append(work.Jobs, trace.Job{
			ID:     fmt.Sprintf("application-%06d", i*7919%1000003),
			Submit: time.Duration(i) * time.Second, Duration: time.Minute,
			Podsets: []trace.Podset{{Count: 1 + i%9, GPUs: 1 + i%4}},
		})
	}
	return made(t, f, work)
}

// days are some days of a trace on a fleet, with failures.
func days(t *testing.T, fleetName, traceName string, n int, load float64) *scenario.Scenario {
	t.Helper()
	f, err := fleet.Open(fleetName)
	if err != nil {
		t.Fatal(err)
	}
	work, err := trace.Open(traceName, 1)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Duration(n) * 24 * time.Hour
	work.Jobs = slices.DeleteFunc(work.Jobs, func(j trace.Job) bool { return j.Submit > end })
	for i := range 12 {
		at, node := end*time.Duration(i+1)/14, f.Nodes[(i*211+17)%len(f.Nodes)].Name
		kind := trace.Fail
		if i%4 == 3 {
			kind = trace.Drain
		}
		work.Events = append(work.Events, trace.Event{At: at, Kind: kind, Nodes: []string{node}})
		if i%3 > 0 {
			back := trace.Event{At: at + 10*time.Hour, Kind: trace.Return, Nodes: []string{node}}
			work.Events = append(work.Events, back)
		}
	}
	slices.SortStableFunc(work.Events, func(a, b trace.Event) int { return cmp.Compare(a.At, b.At) })
	s, err := importer.New(f, work, scenario.Options{Seed: 1, Load: load})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func made(t *testing.T, f fleet.Fleet, work trace.Trace) *scenario.Scenario {
	t.Helper()
	s, err := importer.New(f, work, scenario.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// example is the report's input of a short run.
func example(t *testing.T) report.Input {
	t.Helper()
	return input(t, short(t), direct.Options{}, "lockstep")
}

// input returns the engine's result for a scene.
func input(t *testing.T, s *scenario.Scenario, o direct.Options, scheduler string) report.Input {
	t.Helper()
	tally := measure.New(s, measure.Header{
		Scheduler: scheduler, Engine: "direct", Commit: "0123456789ab", ConfigHash: "fedcba98",
		TieRule: "least fragmentation left behind, then the first by name",
		Machine: "2 cores, the machine of this test",
	})
	record := report.NewRecorder(s)
	began := time.Now()
	if err := direct.NewEngine(o, time.Now).Run(t.Context(), s, both{tally, record}); err != nil {
		t.Fatal(err)
	}
	return report.Input{
		Card: tally.Scorecard(time.Since(began)), Series: tally.Series(), Outcomes: tally.Outcomes(), Record: record,
	}
}
