package progress_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

// twin computes a run's counts anew from all events so far.
type twin struct {
	scene *scenario.Scenario
	told  []engine.Event
}

type tallied struct {
	submitted, ended, running, waiting int
	waitingGPUs, inUse, there, largest int64
	oldest                             time.Duration
}

func (w *twin) tally() tallied {
	var out tallied
	now := w.told[len(w.told)-1].At
	away, used := slices.Clone(w.scene.Closed), make([]int64, w.scene.Ledger.Len())
	for i := range w.scene.Jobs {
		j := &w.scene.Jobs[i]
		var last engine.Event
		var since time.Duration
		for _, e := range w.told {
			if e.Job != i || e.Kind == engine.Refused || e.Kind == engine.Leased {
				continue
			}
			last = e
			if e.Kind != engine.Started && e.Kind != engine.Ended {
				since = e.At
			}
		}
		switch last.Kind {
		case "":
			continue
		case engine.Started:
			out.running++
			for rank, node := range last.Nodes {
				used[node] += j.Gang.Shapes[j.Gang.Members[rank].Shape].Demand[w.scene.Accelerator]
			}
		case engine.Ended:
			out.ended++
		default:
			out.waiting++
			out.waitingGPUs += j.Accelerators
			out.largest, out.oldest = max(out.largest, j.Accelerators), max(out.oldest, now-since)
		}
		out.submitted++
	}
	for _, e := range w.told {
		for _, node := range e.Nodes {
			switch e.Kind {
			case engine.NodesFailed, engine.NodesDrained:
				away[node] = true
			case engine.NodesReturned:
				away[node] = w.scene.Closed[node]
			default: // events of jobs are counted above
			}
		}
	}
	for node, n := range used {
		out.inUse += n
		if away[node] {
			out.there += n
		} else {
			out.there += w.scene.Ledger.Total[node][w.scene.Accelerator]
		}
	}
	return out
}

// pair reports the same to a run and its twin.
type pair struct {
	t    *testing.T
	run  *progress.Run
	twin *twin
}

func (p *pair) Decides(engine.Decision) {}

func (p *pair) Happens(e engine.Event) {
	p.run.Happens(e)
	e.Nodes = slices.Clone(e.Nodes)
	p.twin.told = append(p.twin.told, e)
	if len(p.twin.told)%7 != 0 {
		return
	}
	s, want := p.run.Look(), p.twin.tally()
	got := tallied{
		s.Submitted, s.Ended, s.Running, s.Waiting, s.WaitingGPUs, s.GPUsInUse, s.GPUs, s.LargestWaiting, s.OldestWait,
	}
	if got != want {
		p.t.Fatalf("after %d events:\n%+v, the twin has\n%+v", len(p.twin.told), got, want)
	}
	var inUse, there int64
	for _, d := range s.Domains {
		inUse, there = inUse+d.InUse, there+d.There
	}
	if inUse > want.inUse || there > want.there || inUse < want.inUse-2 {
		p.t.Fatalf("domains have %d of %d in use, the fleet has %d of %d and two outside them",
			inUse, there, want.inUse, want.there)
	}
}

// random is a scene in which gangs of all sizes arrive, some preempt others, and nodes fail, drain and return.
func random(tb testing.TB, seed uint64, jobs int) *scenario.Scenario {
	tb.Helper()
	f, err := fleet.Open("gb200-72")
	if err != nil {
		tb.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(seed, 0))
	made := trace.Trace{Name: "random"}
	at := time.Duration(0)
	for i := range jobs {
		at += time.Duration(chance.IntN(600)) * time.Second
		made.Jobs = append(made.Jobs, trace.Job{
			ID: "job-" + strconv.Itoa(i), Submit: at, Duration: time.Duration(1+chance.IntN(20_000)) * time.Second,
			Podsets:  []trace.Podset{{Count: 1 << chance.IntN(6), GPUs: 4}},
			Priority: contention.Urgent * int32(chance.IntN(3)), Preemptible: chance.IntN(2) == 0,
		})
		if i%10 == 0 {
			node := []string{"rack-" + strconv.Itoa(1+i/10%4) + "-tray-0" + strconv.Itoa(1+i/40%9)}
			made.Events = append(made.Events,
				trace.Event{At: at, Kind: []trace.Kind{trace.Fail, trace.Drain}[chance.IntN(2)], Nodes: node},
				trace.Event{At: at + 4*time.Second, Kind: trace.Return, Nodes: node})
		}
	}
	s, err := importer.New(f, made, scenario.Options{Seed: seed})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Counting event by event gives the same as counting everything anew, for all events of an engine.
func TestCounts_EqualTheTwins(t *testing.T) {
	for seed := range uint64(4) {
		s := random(t, seed, 80)
		s.Closed[5] = true
		clk := clocktesting.NewFakeClock(time.Unix(0, 0))
		p := &pair{t, progress.Unwatched(clk, "", 1, 1, s), &twin{scene: s}}
		if err := direct.NewEngine(direct.Options{Preempt: true}, clk.Now).Run(t.Context(), s, p); err != nil {
			t.Fatal(err)
		}
		kinds := make(map[engine.Kind]int)
		for _, e := range p.twin.told {
			kinds[e.Kind]++
		}
		if kinds[engine.Disrupted] == 0 && seed == 0 || kinds[engine.Preempted] == 0 && seed == 0 {
			t.Errorf("nobody was disrupted, or preempted: %v", kinds)
		}
	}
}

// record writes events down.
type record struct{ told []engine.Event }

func (r *record) Decides(engine.Decision) {}

func (r *record) Happens(e engine.Event) {
	e.Nodes = slices.Clone(e.Nodes)
	r.told = append(r.told, e)
}

// both notifies two watchers.
type both [2]engine.Watcher

func (b both) Happens(e engine.Event) {
	b[0].Happens(e)
	b[1].Happens(e)
}

func (b both) Decides(d engine.Decision) {
	b[0].Decides(d)
	b[1].Decides(d)
}

// An engine decides the same whether it is watched or not.
func TestWatch_ChangesNoDecision(t *testing.T) {
	s := random(t, 9, 100)
	alone, looked := &record{}, &record{}
	play(t, s, alone)
	_, shown := progress.Start(t.Context(), progress.Options{
		Out: &paper{}, Form: progress.Screen, Clock: clock.RealClock{}, Environment: []string{"TERM=xterm"},
	})
	run := shown.Watch("", s)
	play(t, s, both{run, looked})
	run.Done()
	if err := shown.Close(); err != nil {
		t.Error(err)
	}
	equal := func(a, b engine.Event) bool {
		nodes := slices.Equal(a.Nodes, b.Nodes)
		a.Nodes, b.Nodes = nil, nil
		return nodes && a.At == b.At && a.Kind == b.Kind && a.Job == b.Job && a.Running == b.Running && a.From == b.From
	}
	if len(alone.told) == 0 || !slices.EqualFunc(alone.told, looked.told, equal) {
		t.Errorf("%d events alone, %d others with a reader", len(alone.told), len(looked.told))
	}
}

func play(tb testing.TB, s *scenario.Scenario, w engine.Watcher) {
	tb.Helper()
	err := direct.NewEngine(direct.Options{Preempt: true}, time.Now).Run(tb.Context(), s, w)
	if err != nil && !errors.Is(err, context.Canceled) {
		tb.Fatal(err)
	}
}

// Percentiles are within a thirtieth of the exact ones.
func TestLatencies(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	var of []time.Duration
	for range 5000 {
		of = append(of, time.Duration(1)<<chance.IntN(40)+time.Duration(chance.IntN(1000)))
	}
	sorted := slices.Sorted(slices.Values(of))
	quantiles := []float64{0, 0.25, 0.5, 0.9, 0.99, 1}
	for i, got := range progress.Latencies(of, quantiles...) {
		want := sorted[min(int(quantiles[i]*float64(len(of))), len(of)-1)]
		if off := (got - want).Abs(); off*30 > want {
			t.Errorf("quantile %g is %s, and not %s", quantiles[i], got, want)
		}
	}
	if got := progress.Latencies(nil, 0.5)[0]; got != 0 {
		t.Errorf("of nothing half is below %s", got)
	}
	if got := progress.Latencies([]time.Duration{1<<63 - 1, -5}, 0, 1); got[0] != 0 || got[1] < 1<<62 {
		t.Errorf("the extremes are %v", got)
	}
}

// A history never exceeds its length, whatever time it covers, and its mean is that of the recorded use.
func TestHistory(t *testing.T) {
	chance := rand.New(rand.NewPCG(2, 2))
	for _, step := range []int{1, 100, 1_000_000} {
		at, instants, uses, sum := time.Duration(0), []time.Duration{0}, make(map[time.Duration]int64), 0.0
		for range 3000 {
			last := at
			at += time.Duration(1+chance.IntN(step)) * time.Second
			uses[last] = int64(chance.IntN(101))
			sum += float64(uses[last]) / 100 * (at - last).Seconds()
			instants = append(instants, at)
		}
		shares := progress.Shares(uses, instants, 100)
		if len(shares) < 128 || len(shares) > 256 {
			t.Errorf("%d bins", len(shares))
		}
		mean := 0.0
		for _, s := range shares {
			mean += s / float64(len(shares))
		}
		if want := sum / at.Seconds(); mean < want-0.01 || mean > want+0.01 {
			t.Errorf("the mean is %g, and not %g", mean, want)
		}
	}
}

// BenchmarkHappens reports all events of a thousand jobs to a run, again and again, while it is drawn ten times a
// second.
func BenchmarkHappens(b *testing.B) {
	s := random(b, 3, 1000)
	var told record
	play(b, s, &told)
	_, shown := progress.Start(b.Context(), progress.Options{
		Out: &paper{}, Form: progress.Screen, Clock: clock.RealClock{}, Environment: []string{"TERM=xterm"},
	})
	b.ReportAllocs()
	for b.Loop() {
		run := shown.Watch("", s)
		for _, e := range told.told {
			run.Happens(e)
			run.Decides(engine.Decision{Took: 12345})
		}
		run.Done()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(told.told)), "ns/event")
	_ = shown.Close()
}
