package measure_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/topology"
)

// The resources of the scenes of these tests: CPU, and accelerators.
const accelerator = 1

// racks are empty nodes with 100 CPUs and 4 accelerators each, two a rack, whose boundary costs two edges between nodes
// more.
func racks(tb testing.TB, nodes int) *scenario.Scenario {
	tb.Helper()
	return cluster(tb, nodes, 2, topology.Level{Name: "rack", Key: "test/rack", Weight: 200})
}

func cluster(tb testing.TB, nodes, perDomain int, level topology.Level) *scenario.Scenario {
	tb.Helper()
	all := make([]topology.Node, nodes)
	for i := range all {
		all[i] = topology.Node{
			Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{level.Key: fmt.Sprintf("r%03d", i/perDomain)},
		}
	}
	return of(tb, []topology.Level{level}, all)
}

// of is a scene of nodes with 100 CPUs and 4 accelerators each.
func of(tb testing.TB, levels []topology.Level, nodes []topology.Node) *scenario.Scenario {
	tb.Helper()
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		tb.Fatal(err)
	}
	n := len(nodes)
	s := &scenario.Scenario{
		Fleet:       "racks",
		Trace:       "story",
		Source:      "made here",
		Synthetic:   true,
		Resources:   []string{"cpu", "gpu"},
		Accelerator: accelerator,
		Closed:      make([]bool, n),
		Devices:     make([]bool, n),
		Options:     scenario.Options{Seed: 7},
	}
	s.Ledger.Tree = tree
	for range n {
		s.Ledger.Free = append(s.Ledger.Free, topology.Capacity{100, 4})
		s.Ledger.Total = append(s.Ledger.Total, topology.Capacity{100, 4})
	}
	return s
}

// add adds a gang of members with so many accelerators each; it returns the gang, so that the caller can change it.
func add(s *scenario.Scenario, submit, runs, members int, gpus int64) *scenario.Job {
	j := scenario.Job{
		ID: fmt.Sprintf("job-%d", len(s.Jobs)), Submit: seconds(submit), Duration: seconds(runs), Needed: members,
		Accelerators: int64(members) * gpus,
		Gang: topology.Gang{
			Members: make([]topology.Member, members), Shapes: []topology.Shape{{Demand: topology.Capacity{1, gpus}}},
		},
	}
	j.Gang.Name = j.ID
	s.Jobs = append(s.Jobs, j)
	return &s.Jobs[len(s.Jobs)-1]
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// told reports events to a tally.
type told struct{ *measure.Tally }

func listen(s *scenario.Scenario) told {
	return told{measure.New(s, measure.Header{Scheduler: "hand", Engine: "test", Commit: "abc", TieRule: "none"})}
}

func (t told) job(at int, kind engine.Kind, job int, nodes ...int) {
	t.Happens(engine.Event{At: seconds(at), Kind: kind, Job: job, Running: engine.None, Nodes: nodes})
}

func (t told) node(at int, kind engine.Kind, nodes ...int) {
	t.Happens(engine.Event{At: seconds(at), Kind: kind, Job: engine.None, Running: engine.None, Nodes: nodes})
}

func (t told) running(at int, kind engine.Kind, running int) {
	t.Happens(engine.Event{At: seconds(at), Kind: kind, Job: engine.None, Running: running})
}

func (t told) card() measure.Scorecard { return t.Scorecard(2 * time.Second) }

// three is two jobs that start on arrival, on four nodes in two racks, and one of the whole fleet that has to wait for
// them; firsts are the nodes of the first, alls those of the last.
func three(tb testing.TB, firsts, alls []int) told {
	tb.Helper()
	s := racks(tb, 4)
	add(s, 0, 100, 2, 4)
	add(s, 10, 50, 4, 4)
	add(s, 20, 30, 1, 4)
	t := listen(s)
	single := slices.IndexFunc([]int{0, 1, 2, 3}, func(n int) bool { return !slices.Contains(firsts, n) && n > 0 })
	t.job(0, engine.Submitted, 0)
	t.job(0, engine.Started, 0, firsts...)
	t.job(10, engine.Submitted, 1)
	t.job(10, engine.Refused, 1)
	t.job(20, engine.Submitted, 2)
	t.job(20, engine.Started, 2, single)
	t.job(50, engine.Ended, 2)
	t.job(100, engine.Ended, 0)
	t.job(100, engine.Started, 1, alls...)
	t.job(150, engine.Ended, 1)
	return t
}

// equal compares numbers of a scorecard with those computed by hand.
func equal(tb testing.TB, card measure.Scorecard, want map[string]float64) {
	tb.Helper()
	for name, number := range want {
		d, ok := measure.DefinitionOf(name)
		if !ok {
			tb.Fatalf("there is no %s", name)
		}
		if got := d.Of(card); got-number > 1e-9 || number-got > 1e-9 {
			tb.Errorf("%s is %v, by hand it is %v", name, got, number)
		}
	}
}

func TestTally_ThreeJobsByHand(t *testing.T) {
	tally := three(t, []int{0, 1}, []int{0, 1, 2, 3})
	tally.Decides(engine.Decision{Took: 10 * time.Millisecond, Members: 2, Placed: true})
	tally.Decides(engine.Decision{Took: 20 * time.Millisecond, Members: 4})
	card := tally.card()
	equal(t, card, map[string]float64{
		"gangs.submitted": 3,
		"gangs.placed":    3,
		"gangs.finished":  3,
		"gangs.pending":   0,
		"pods.placed":     7,
		// The waits are 0, 90 and 0.
		"wait_seconds.mean": 30,
		"wait_seconds.p50":  0,
		"wait_seconds.p95":  90,
		"wait_seconds.p99":  90,
		"wait_seconds.max":  90,
		// Times from submission to end are 100, 140 and 30.
		"jct_seconds.mean": 90,
		"jct_seconds.p50":  100,
		"jct_seconds.p95":  140,
		"makespan_seconds": 150,
		// Slowdowns are 1, 140/60 and 1: 30 s are less than the slack of 60 s.
		"bounded_slowdown.mean":           (2 + 140.0/60) / 3,
		"bounded_slowdown.p95":            140.0 / 60,
		"bounded_slowdown.geometric_mean": 1.3263524026321305,
		// Work is 8*100, 16*50 and 4*30 accelerator-seconds.
		"by_gpu_hours.wait_seconds_mean":     90 * 800.0 / 1720,
		"by_gpu_hours.jct_seconds_mean":      (100*800 + 140*800 + 30*120) / 1720.0,
		"by_gpu_hours.bounded_slowdown_mean": (800 + 140.0/60*800 + 120) / 1720.0,
		// 8 are in use until 20, 12 until 50, 8 until 100 and 16 until 150; the second waits from 10 to 100.
		"utilisation.mean":      1720.0 / (16 * 150),
		"utilisation.busy_mean": 840.0 / (16 * 90),
		"utilisation.peak":      1,
		// Sizes of 2, 4 and 1 nodes. Until 20, and from 50 to 100, a rack is free: only the 4 have no use for it. From
		// 20 to 50 one node is free, which the 2 cannot use either; then none is. Sizes weigh as much as they request.
		"fragmentation.mean":          (70*4.0/7 + 30*6.0/7) / 150,
		"fragmentation.end":           0,
		"largest_placeable.mean":      (70*8.0 + 30*4.0) / 150,
		"largest_placeable.min":       0,
		"quality.mean_q":              1,
		"quality.p05_q":               1,
		"quality.mean_gap":            0,
		"quality.p95_gap":             0,
		"quality.split_domains":       0,
		"quality.rank_inversions":     0,
		"by_gpu_hours.quality_mean_q": 1,
		"violations.partial_gangs":    0,
		"violations.required_level":   0,
		"violations.double_booking":   0,
		"throughput.gangs_per_s":      1.5,
		"throughput.pods_per_s":       3.5,
		"throughput.wall_s":           2,
		"decision_ms.max":             20,
	})
	if card.Window.Jobs != 3 || card.Window.From != 0 || card.Window.To != 150 {
		t.Errorf("the window of three jobs is %+v", card.Window)
	}
	if card.Utilization.BusySeconds != 90 || card.Quality.Samples != 2 || card.Quality.Every != 1 {
		t.Errorf(
			"somebody waited for %v s, and %d starts were judged",
			card.Utilization.BusySeconds,
			card.Quality.Samples,
		)
	}
	if d := card.DecisionMS; d.Count != 2 || d.P50 < 10 || d.P50 > 10.1 || d.P99 != 20 {
		t.Errorf("decisions of 10 and 20 ms are summed up as %+v", d)
	}
	if placed, refused := card.DecisionMSPlaced, card.DecisionMSRefused; placed.Max != 10 || refused.Max != 20 {
		t.Errorf("decisions by their results are %+v and %+v", placed, refused)
	}
	if again := tally.card(); fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", card) {
		t.Error("asking for the scorecard changed it")
	}
}

func TestQuality_ComparesWithTheBest(t *testing.T) {
	// The first gang is across two racks though one was free: 2 edges between nodes and 2 between racks, 600, instead
	// of 200. The second crosses from rack to rack at each step: 4 edges between nodes and 4 between racks, 1200,
	// instead of 800.
	tally := three(t, []int{0, 2}, []int{0, 2, 1, 3})
	equal(t, tally.card(), map[string]float64{
		"quality.mean_q":              (1.0/3 + 2.0/3) / 2,
		"quality.p05_q":               1.0 / 3,
		"quality.mean_gap":            (2 + 0.5) / 2,
		"quality.p95_gap":             2,
		"quality.split_domains":       1,
		"quality.rank_inversions":     2,
		"by_gpu_hours.quality_mean_q": 0.5,
	})
	outcomes := tally.Outcomes()
	if q := outcomes[0].Q; q < 0.333 || q > 0.334 || outcomes[2].Q != 1 {
		t.Errorf("the jobs' qualities are %v and %v", q, outcomes[2].Q)
	}
	if o := outcomes[1]; o.Nodes != 4 || !slices.Equal(o.Domains, []int32{2}) || o.Wait != seconds(90) ||
		o.Start != seconds(100) || o.End != seconds(150) || o.Members != 4 || o.Class != "2-4 nodes" {
		t.Errorf("the second job came to %+v", o)
	}
}

func TestQuality_OneNodeWouldHaveDone(t *testing.T) {
	// The best costs nothing: both sides count an edge more, so that Q is 100/(200+100).
	s := racks(t, 4)
	add(s, 0, 10, 2, 2)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 0, 1)
	equal(
		t,
		tally.card(),
		map[string]float64{"quality.mean_q": 1.0 / 3, "quality.mean_gap": 2, "quality.split_domains": 0},
	)
}

func TestTally_PreemptionCountsAllWaits(t *testing.T) {
	s := racks(t, 2)
	add(s, 0, 100, 2, 4)
	add(s, 30, 60, 2, 4)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(10, engine.Started, 0, 0, 1)
	tally.job(30, engine.Submitted, 1)
	tally.job(30, engine.Preempted, 0)
	tally.job(30, engine.Started, 1, 0, 1)
	tally.job(90, engine.Ended, 1)
	tally.job(90, engine.Started, 0, 0, 1)
	tally.job(190, engine.Ended, 0)
	equal(t, tally.card(), map[string]float64{
		"gangs.placed": 2, "pods.placed": 6, "preemption.gangs": 1, "preemption.gpu_hours": 8 * 20 / 3600.0,
		"wait_seconds.max": 70, "wait_seconds.mean": 35, "jct_seconds.mean": (190 + 60) / 2,
		"bounded_slowdown.mean": (1.9 + 1) / 2, "violations.double_booking": 0, "preemption.disrupted": 0,
	})
	if o := tally.Outcomes()[0]; o.Preemptions != 1 || o.Start != seconds(10) || o.End != seconds(190) {
		t.Errorf("the preempted job came to %+v", o)
	}
}

func TestTally_WaitingGangCountsUntilTheEnd(t *testing.T) {
	s := racks(t, 2)
	add(s, 0, 120, 1, 4)
	add(s, 20, 120, 2, 4)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 1)
	tally.job(20, engine.Submitted, 1)
	tally.job(120, engine.Ended, 0)
	card := tally.card()
	equal(t, card, map[string]float64{
		"gangs.pending":        1,
		"gangs.finished":       1,
		"wait_seconds.max":     100,
		"jct_seconds.mean":     120,
		"makespan_seconds":     120,
		"bounded_slowdown.p95": 220.0 / 120,
	})
	if o := tally.Outcomes()[1]; !o.Waiting || o.Start != measure.Never || o.End != measure.Never || o.Q != 0 {
		t.Errorf("the job that waits came to %+v", o)
	}
	if classes := card.Classes; len(classes) != 2 || classes[1].Name != "2-4 nodes" || classes[1].Pending != 1 ||
		classes[0].Name != "one node" || classes[0].Wait.Max != 0 {
		t.Errorf("the classes are %+v", card.Classes)
	}
	series := tally.Series()
	last := len(series.Seconds) - 1
	if series.Seconds[last] != 120 || series.Waiting[last] != 1 || series.OldestSeconds[last] != 100 ||
		series.Demanded[last] != 8 || series.OldestSeconds[50] != 30 || series.Used[50] != 4 || series.Largest[50] != 4 {
		t.Errorf(
			"the series ends with %v s, %d waiting, the oldest for %v s",
			series.Seconds[last],
			series.Waiting[last],
			series.OldestSeconds[last],
		)
	}
}

func TestTally_AbsentNodesAreNoCapacity(t *testing.T) {
	s := racks(t, 4)
	s.Closed[3] = true
	add(s, 0, 100, 2, 4)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 0, 1) // 8 of 12
	tally.node(50, engine.NodesFailed, 1)
	tally.job(50, engine.Disrupted, 0) // 0 of 8
	tally.node(60, engine.NodesDrained, 2)
	tally.node(70, engine.NodesReturned, 1, 2)
	tally.job(70, engine.Started, 0, 1, 2) // 8 of 12
	tally.job(170, engine.Ended, 0)
	card := tally.card()
	equal(t, card, map[string]float64{
		"utilisation.mean": (8*50 + 8*100) / (12.0*50 + 8*10 + 4*10 + 12*100), "utilisation.peak": 8.0 / 12,
		"preemption.disrupted": 1, "preemption.disrupted_gpu_hours": 8 * 50 / 3600.0, "preemption.gangs": 0,
		"violations.double_booking": 0, "wait_seconds.max": 20,
	})
	if series := tally.Series(); series.Capacity[55] != 8 || series.Capacity[65] != 4 || series.Capacity[75] != 12 {
		t.Errorf("capacities are %d, %d and %d", series.Capacity[55], series.Capacity[65], series.Capacity[75])
	}
}

func TestTally_UnitsRunningAtTheBeginning(t *testing.T) {
	s := racks(t, 2)
	hold := topology.Held{Node: 0, Demand: topology.Capacity{1, 4}}
	s.Running = []scenario.Running{
		{Name: "old", Holds: []topology.Held{hold}, Accelerators: 4},
		{Name: "older", Holds: []topology.Held{{Node: 1, Demand: topology.Capacity{1, 2}}}, Accelerators: 2},
	}
	s.Ledger.Free[0], s.Ledger.Free[1] = topology.Capacity{99, 0}, topology.Capacity{99, 2}
	add(s, 0, 10, 1, 4)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.running(36, engine.Ended, 0)
	tally.job(36, engine.Started, 0, 0)
	tally.job(46, engine.Ended, 0)
	tally.running(72, engine.Preempted, 1)
	equal(t, tally.card(), map[string]float64{
		"utilisation.mean": (6*46 + 2*26) / (8.0 * 72), "preemption.gangs": 1, "preemption.gpu_hours": 0.04,
		"violations.double_booking": 0, "fragmentation.end": 0, "largest_placeable.min": 0,
	})
}
