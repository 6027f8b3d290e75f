package kube_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

func TestEngine_GangsStartAndEnd(t *testing.T) {
	s := set(t, "gb200-72", scenario.Options{}, trace.Trace{Jobs: []trace.Job{
		within(rack, whole("a", 0, time.Minute, 18)), whole("b", 10*time.Second, time.Minute, 2),
	}})
	objects, err := importer.ObjectsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []kube.Profile{kube.Lockstep, kube.Native} {
		r := play(t, s, profile)
		expect(t, r.eventLog(s), `
0s submitted a
0s started a
10s submitted b
10s started b
1m0s ended a
1m10s ended b
`)
		domains := make(map[string]bool)
		for _, node := range r.starts(s)["a"] {
			at, _ := s.Ledger.Tree.Index(node)
			domains[objects.Nodes[at].Labels["nvidia.com/gpu.clique"]] = true
		}
		if nodes := r.starts(s)["a"]; len(domains) != 1 ||
			len(slices.Compact(slices.Sorted(slices.Values(nodes)))) != 18 {
			t.Errorf("%s: the members of a are on %v", profile, nodes)
		}
		if len(r.decisions) < 2 || !r.decisions[0].Placed || r.decisions[0].Members != 18 {
			t.Errorf("%s: it decided %+v", profile, r.decisions)
		}
	}
}

// Freed capacity is gathered for 50 ms before waiting gangs are evaluated. The stock scheduler looks at them when their
// backoff is over.
func TestEngine_GangWaitsForRoom(t *testing.T) {
	s := set(t, "gb200-72", scenario.Options{}, trace.Trace{Jobs: []trace.Job{
		whole("most", 0, time.Minute, 70), within(rack, whole("next", 5*time.Second, time.Minute, 10)),
	}})
	expect(t, play(t, s, kube.Lockstep).eventLog(s), `
0s submitted most
0s started most
5s submitted next
1m0s ended most
1m0s started next
2m0s ended next
`)
	expect(t, play(t, s, kube.Native).eventLog(s), `
0s submitted most
0s started most
5s submitted next
1m0s ended most
1m13s started next
2m13s ended next
`)
}

// A gang of a higher priority ends the one that has lost least, which returns to its old place in the queue. It is
// evaluated again when the freed capacity has been gathered, as all waiting gangs are: the scheduling queue alone would
// hold it in backoff for up to two seconds.
func TestPreemption(t *testing.T) {
	urgent := within(rack, whole("urgent", 30*time.Second, time.Minute, 18))
	urgent.Priority = contention.Urgent
	s := set(t, "gb200-72", scenario.Options{}, trace.Trace{Jobs: []trace.Job{
		within(rack, whole("a", 0, 2*time.Minute, 18)),
		within(rack, whole("b", 1*time.Second, 2*time.Minute, 18)),
		within(
			rack,
			whole("c", 2*time.Second, 2*time.Minute, 18),
		),
		within(rack, whole("d", 3*time.Second, 2*time.Minute, 18)),
		urgent,
	}})
	expect(t, play(t, s, kube.Lockstep).eventLog(s), `
0s submitted a
0s started a
1s submitted b
1s started b
2s submitted c
2s started c
3s submitted d
3s started d
30s submitted urgent
30s preempted d
30s started urgent
1m30s ended urgent
1m30s started d
2m0s ended a
2m1s ended b
2m2s ended c
3m30s ended d
`)
}

// A gang of higher priority takes a part of the place that is reserved for the first of the queue, whose instant is
// much later then: a job that was refused because of that place passes at once, though no unit has left.
func TestPreemption_TakesReservedPlace(t *testing.T) {
	urgent := whole("urgent", 30*time.Second, 1000*time.Second, 2)
	urgent.Priority = contention.Urgent
	s := set(t, "gb200-72", scenario.Options{Estimates: 1}, trace.Trace{Jobs: []trace.Job{
		whole("most", 0, 100*time.Second, 66), whole("rest", 10*time.Second, 100*time.Second, 72),
		whole("slow", 20*time.Second, 500*time.Second, 4), urgent,
	}})
	expect(t, play(t, s, kube.Lockstep).eventLog(s), `
0s submitted most
0s started most
10s submitted rest
20s submitted slow
30s submitted urgent
30s started urgent
30s started slow
1m40s ended most
8m50s ended slow
17m10s ended urgent
17m10s started rest
18m50s ended rest
`)
}

// A gang that loses a node starts again elsewhere, with all of its duration before it, and nothing starts on the node
// before it returns.
func TestNodeFailure_GangRestartsElsewhere(t *testing.T) {
	jobs := []trace.Job{within(rack, whole("a", 0, time.Minute, 18)), whole("all", 20*time.Second, time.Minute, 72)}
	s := set(t, "gb200-72", scenario.Options{}, trace.Trace{Jobs: jobs})
	first := play(t, s, kube.Lockstep).starts(s)["a"]
	s = set(t, "gb200-72", scenario.Options{}, trace.Trace{Jobs: jobs, Events: []trace.Event{
		{At: 10 * time.Second, Kind: trace.Fail, Nodes: first[:1]},
		{At: 100 * time.Second, Kind: trace.Return, Nodes: first[:1]},
	}})
	for _, profile := range []kube.Profile{kube.Lockstep, kube.Native} {
		r := play(t, s, profile)
		if profile == kube.Lockstep {
			expect(t, r.eventLog(s), `
0s submitted a
0s started a
10s nodes-failed
10s disrupted a
10s started a
20s submitted all
1m10s ended a
1m40s nodes-returned
1m40s started all
2m40s ended all
`)
		}
		for i, e := range r.events {
			failed := slices.IndexFunc(r.events[:i], func(e engine.Event) bool { return e.Kind == engine.NodesFailed })
			back := slices.IndexFunc(r.events[:i], func(e engine.Event) bool { return e.Kind == engine.NodesReturned })
			if e.Kind == engine.Started && failed >= 0 && back < 0 &&
				slices.Contains(e.Nodes, r.events[failed].Nodes[0]) {
				t.Errorf("%s: %s on a node that failed", profile, line(s, e))
			}
		}
	}
}

// The first of the queue has its place reserved. A job that ends in time passes, one that does not waits, and both are
// reported.
func TestBackfill(t *testing.T) {
	most := whole("most", 0, 100*time.Second, 68)
	all := whole("rest", 10*time.Second, 100*time.Second, 72)
	short := whole("short", 20*time.Second, 50*time.Second, 4)
	long := whole("slow", 21*time.Second, 500*time.Second, 4)
	s := set(t, "gb200-72", scenario.Options{Estimates: 1}, trace.Trace{Jobs: []trace.Job{most, all, short, long}})
	r := play(t, s, kube.Lockstep)
	expect(t, r.eventLog(s), `
0s submitted most
0s started most
10s submitted rest
20s submitted short
20s started short
21s submitted slow
1m10s ended short
1m40s ended most
1m40s started rest
3m20s ended rest
3m20s started slow
11m40s ended slow
`)
	var refused, kept []string
	for _, e := range r.events {
		switch e.Kind {
		case engine.Refused:
			refused = append(refused, line(s, e))
		case engine.Leased:
			kept = append(kept, fmt.Sprint(line(s, e), " ", len(e.Nodes), " from ", e.From))
		default:
		}
	}
	if want := []string{"10s refused rest", "21s refused slow"}; !slices.Equal(refused, want) {
		t.Errorf("refused: %q, want %q", refused, want)
	}
	if want := []string{"10s kept rest 72 from 1m40s"}; !slices.Equal(kept[:1], want) {
		t.Errorf("kept: %q, want first %q", kept, want)
	}
}

// A scene that is played twice gives the same events, whatever runs beside it.
func TestEngine_EqualScenesGiveEqualEvents(t *testing.T) {
	jobs := 10
	if *long {
		jobs = 40
	}
	s := set(t, "gb200-72", scenario.Options{Seed: 3, Estimates: 2}, crowd(3, jobs))
	for _, profile := range []kube.Profile{kube.Lockstep, kube.Native} {
		var first *record
		for _, processors := range []int{2, 1, 4} {
			before := runtime.GOMAXPROCS(processors)
			r := play(t, s, profile)
			runtime.GOMAXPROCS(before)
			if first == nil {
				first = r
			}
			if diff := cmp.Diff(first.events, r.events); diff != "" {
				t.Fatalf("%s on %d processors: first time -, now +:\n%s", profile, processors, diff)
			}
		}
		ended := 0
		for _, e := range first.events {
			if e.Kind == engine.Ended {
				ended++
			}
		}
		if ended != len(s.Jobs) {
			t.Errorf("%s: %d of %d jobs ended", profile, ended, len(s.Jobs))
		}
	}
}

func TestNew_RefusesUnknownProfile(t *testing.T) {
	_, err := kube.New(kube.Options{Profile: "slurm"})
	if bad := (*badinput.Error)(nil); !errors.As(err, &bad) {
		t.Errorf("%v, want bad input", err)
	}
}

// A run that is stopped says so, and has reported its events so far.
func TestEngine_StoppedReportsEventsSoFar(t *testing.T) {
	s := set(t, "gb200-72", scenario.Options{}, crowd(1, 10))
	e, err := kube.New(kube.Options{Profile: kube.Lockstep})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &stopper{stop: cancel}
	if err := e.Run(ctx, s, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was stopped", err)
	}
	if len(r.events) == 0 || r.events[len(r.events)-1].Kind == engine.Ended {
		t.Errorf("%d events", len(r.events))
	}
}

// stopper ends the run when the first job starts.
type stopper struct {
	record

	stop func()
}

func (s *stopper) Happens(e engine.Event) {
	s.record.Happens(e)
	if e.Kind == engine.Started {
		s.stop()
	}
}

// Three racks and 17 trays of the fourth are full of urgent gangs, for which another one waits; on the last tray runs a
// job of priority 0. Behind the head of the queue an urgent gang of a lower priority asks for a tray: it preempts at
// once, by both engines. The scheduler once took two minutes for that, and the machine an hour.
func TestPreemption_GangBehindTheHeadPreempts(t *testing.T) {
	known := func(j trace.Job, priority int32, preemptible bool) trace.Job {
		j.Priority, j.Preemptible, j.Estimate = priority, preemptible, j.Duration
		return j
	}
	s := set(t, "gb200-72", scenario.Options{}, trace.Trace{Jobs: []trace.Job{
		known(within(rack, whole("r1", 0, time.Hour, 18)), contention.Urgent+10, false),
		known(within(rack, whole("r2", 0, 2*time.Hour, 18)), contention.Urgent+10, false),
		known(within(rack, whole("r3", 0, 3*time.Hour, 18)), contention.Urgent+10, false),
		known(within(rack, whole("r4", 0, 4*time.Hour, 17)), contention.Urgent+10, false),
		known(whole("low", 0, 4*time.Hour+30*time.Minute, 1), 0, true),
		known(within(rack, whole("head", time.Minute, 2*time.Hour, 18)), contention.Urgent+10, false),
		known(whole("follower", 2*time.Minute, 30*time.Minute, 1), contention.Urgent+5, false),
	}})
	want := `
0s submitted r1
0s submitted r2
0s submitted r3
0s submitted r4
0s submitted low
0s started r1
0s started r2
0s started r3
0s started r4
0s started low
1m0s submitted head
2m0s submitted follower
2m0s preempted low
2m0s started follower
32m0s ended follower
32m0s started low
1h0m0s ended r1
1h0m0s started head
2h0m0s ended r2
3h0m0s ended r3
3h0m0s ended head
4h0m0s ended r4
5h2m0s ended low
`
	expect(t, play(t, s, kube.Lockstep).eventLog(s), want)
	machine := direct.NewEngine(direct.Options{Preempt: true}, time.Now)
	expect(t, run(t.Context(), t, s, machine).eventLog(s), want)
}
