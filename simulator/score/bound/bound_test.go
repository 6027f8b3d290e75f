package bound_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/score/bound"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/topology"
)

// cluster is a scenario of so many nodes with so many accelerators each, in racks of two.
func cluster(t *testing.T, nodes int, accelerators int64, jobs ...scenario.Job) *scenario.Scenario {
	t.Helper()
	var all []topology.Node
	s := &scenario.Scenario{
		Resources: []string{"gpu"}, Begin: time.Unix(0, 0), Closed: make([]bool, nodes), Jobs: jobs,
		Options: scenario.Options{Load: 1},
	}
	for i := range nodes {
		all = append(all, topology.Node{
			Name: "n" + string(rune('a'+i)), Labels: map[string]string{"rack": string(rune('a' + i/2))},
		})
		s.Ledger.Free = append(s.Ledger.Free, topology.Capacity{accelerators})
		s.Ledger.Total = append(s.Ledger.Total, topology.Capacity{accelerators})
	}
	var err error
	if s.Ledger.Tree, err = topology.NewTree([]topology.Level{{Name: "rack", Key: "rack"}}, all); err != nil {
		t.Fatal(err)
	}
	return s
}

// gang is a job of members that hold so many accelerators each; times are in seconds.
func gang(id string, members int, accelerators int64, submit, runs int) scenario.Job {
	j := scenario.Job{
		ID:           id,
		Submit:       time.Duration(submit) * time.Second,
		Duration:     time.Duration(runs) * time.Second,
		Needed:       members,
		Accelerators: int64(members) * accelerators,
		Gang:         topology.Gang{Name: id, Shapes: []topology.Shape{{Demand: topology.Capacity{accelerators}}}},
	}
	for rank := range members {
		j.Gang.Members = append(j.Gang.Members, topology.Member{Name: scenario.PodName(id, rank)})
	}
	return j
}

// By hand, on one machine of 4 accelerators: a has 40 of work at 0, b 8 at 2, c 4 at 3. SRPT: a until 2, b until 4 (c
// waits: 1 is left of b when it has 4 of work, as much as c), c until 5, a from there until 13. Ends 13, 4 and 5; each
// alone ends at 10, 4 and 4.
func TestOf(t *testing.T) {
	s := cluster(t, 1, 4, gang("a", 1, 4, 0, 10), gang("b", 1, 4, 2, 2), gang("c", 1, 4, 3, 1))
	got := bound.Of(s)
	want := map[string]float64{
		"jct": (13 + 2 + 2) / 3.0, "wait": (13 + 4 + 5 - 10 - 4 - 4) / 3.0, "makespan": 13,
	}
	for name, is := range map[string]float64{"jct": got.JCT, "wait": got.Wait, "makespan": got.Makespan} {
		if math.Abs(is-want[name]) > 1e-9 {
			t.Errorf("%s is at least %g, want %g", name, is, want[name])
		}
	}
	// By work, as a mean busy time: the machine works from 0 to 13 without a break, whatever it works on, so that the
	// sum of the work times its instant is 4·13²/2 = 338. Half of the run times adds 40·5 + 8·1 + 4·½ = 210;
	// submissions are 8·2 + 4·3 = 28, alone it is 448.
	if byWork := (338 + 210 - 28) / 52.0; math.Abs(got.JCTByWork-byWork) > 1e-9 {
		t.Errorf("completions by work are at least %g, want %g", got.JCTByWork, byWork)
	}
	if wait := (338 + 210 - 448) / 52.0; math.Abs(got.WaitByWork-wait) > 1e-9 {
		t.Errorf("waits by work are at least %g, want %g", got.WaitByWork, wait)
	}
	if empty := bound.Of(cluster(t, 1, 4)); empty != (bound.Bounds{}) {
		t.Errorf("without jobs: %+v", empty)
	}
}

// brute tries every way to give each second of one machine to a job, and returns the least sum of ends, the least sum
// of mean busy times weighted by the run time, plus half of each run time, and the earliest end of all.
func brute(submit, runs []int) (ends, byWork float64, last int) {
	ends, byWork, last = math.Inf(1), math.Inf(1), math.MaxInt
	left := append([]int(nil), runs...)
	var try func(now int, sum, busy float64)
	try = func(now int, sum, busy float64) {
		open, done := false, true
		for i := range left {
			if left[i] == 0 {
				continue
			}
			done = false
			if submit[i] > now {
				continue
			}
			open = true
			left[i]--
			more := 0.0
			if left[i] == 0 {
				more = float64(now + 1)
			}
			try(now+1, sum+more, busy+float64(now)+0.5) // a share of 1/runs of a weight of runs
			left[i]++
		}
		switch {
		case done:
			ends, byWork, last = min(ends, sum), min(byWork, busy), min(last, now)
		case !open:
			try(now+1, sum, busy)
		}
	}
	try(0, 0, 0)
	for _, d := range runs {
		byWork += float64(d*d) / 2
	}
	return ends, byWork, last
}

// On one accelerator the relaxation is the problem itself, and its optimum that of trying everything.
func TestOf_IsTheOptimumOfOneMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := 1 + r.IntN(4)
		submit, runs := make([]int, n), make([]int, n)
		var jobs []scenario.Job
		alone, submits, weights, submitsByWork, aloneByWork := 0.0, 0.0, 0.0, 0.0, 0.0
		first := math.MaxInt
		for i := range n {
			submit[i], runs[i] = r.IntN(5), 1+r.IntN(3)
			jobs = append(jobs, gang(string(rune('a'+i)), 1, 1, submit[i], runs[i]))
			first = min(first, submit[i])
			d, at := float64(runs[i]), float64(submit[i])
			alone += at + d
			submits += at
			weights += d
			submitsByWork += d * at
			aloneByWork += d * (at + d)
		}
		ends, byWork, last := brute(submit, runs)
		got := bound.Of(cluster(t, 1, 1, jobs...))
		for name, c := range map[string][2]float64{
			"jct": {got.JCT, (ends - submits) / float64(n)}, "wait": {got.Wait, (ends - alone) / float64(n)},
			"makespan": {got.Makespan, float64(last - first)},
			"by work":  {got.JCTByWork, (max(byWork, aloneByWork) - submitsByWork) / weights},
		} {
			if math.Abs(c[0]-c[1]) > 1e-9 {
				t.Fatalf("%v for %v: %s is %g, trying everything %g", submit, runs, name, c[0], c[1])
			}
		}
	}
}

// played plays a scenario and returns its scorecard.
func played(t *testing.T, name string, s *scenario.Scenario) measure.Scorecard {
	t.Helper()
	chosen, err := schedulers.Open(schedulers.Ask{Name: name, Nodes: s.Ledger.Len(), Seed: 1}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	tally := measure.New(s, measure.Header{})
	if err := chosen.Engine.Run(t.Context(), s, engine.Watcher(tally)); err != nil {
		t.Fatal(err)
	}
	return tally.Scorecard(0)
}

// No scheduler falls below: completions and makespan whatever happens, waits if no work is lost.
func TestOf_HoldsForAllSchedulers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		var jobs []scenario.Job
		at := 0
		for i := range 12 + r.IntN(12) {
			at += r.IntN(20)
			members := 1
			if r.IntN(2) == 0 {
				members += r.IntN(4)
			}
			j := gang("j"+string(rune('a'+i)), members, 1+r.Int64N(4), at, 1+r.IntN(60))
			if j.Priority = int32(r.IntN(3)); r.IntN(2) == 0 {
				j.Estimate = j.Duration * time.Duration(1+r.IntN(3))
			}
			j.Preemptible = r.IntN(2) == 0
			if members > 2 && r.IntN(3) == 0 {
				j.Min = 1 + r.IntN(members-1)
			}
			jobs = append(jobs, j)
		}
		s := cluster(t, 4, 4, jobs...)
		below := bound.Of(s)
		for _, name := range schedulers.Names() {
			if name == schedulers.NativeTAS {
				continue // it has no objects here; what it does is no other machine's
			}
			card := played(t, name, s)
			if card.Gangs.Finished != len(jobs) {
				continue
			}
			const rounding = 1e-6
			got := map[string][2]float64{
				"completion": {card.JCT.Mean, below.JCT}, "completion by work": {card.ByGPUHours.JCT, below.JCTByWork},
				"makespan": {card.Makespan, below.Makespan},
			}
			if card.Preemption.GPUHours == 0 {
				got["wait"] = [2]float64{card.Wait.Mean, below.Wait}
				got["wait by work"] = [2]float64{card.ByGPUHours.Wait, below.WaitByWork}
			}
			for what, c := range got {
				if c[0] < c[1]-rounding {
					t.Errorf("%s: %s is %g, below the bound %g", name, what, c[0], c[1])
				}
			}
		}
	}
}
