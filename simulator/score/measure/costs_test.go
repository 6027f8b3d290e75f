package measure_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// costly lets placements and starts cost time on racks of two nodes of four accelerators: 10 GB/s inside, 10 GB/s
// between nodes of a rack, 5 GB/s between racks. Two whole nodes sum up 1 GB in 2·3/4·100 + 1000/(4·10) = 175 ms in a
// rack, and in 150 + 50 = 200 ms in two: with a share of 700 thousandths a gang there is 1100 thousandths as slow.
func costly(s *scenario.Scenario) {
	s.Options.Costs = cost.Settings{Slowdown: 1000, Startup: 1000, Checkpoint: 60}
	s.Costs = cost.New(cost.Options{
		Tree: s.Ledger.Tree, Total: s.Ledger.Total, Accelerator: accelerator, Slowdown: 1000, Startup: 1000,
		Network: cost.Network{
			Inside: cost.Link{MBps: 10_000}, Leaf: cost.Link{MBps: 10_000}, Spine: cost.Link{MBps: 5_000},
		},
	})
	for i := range s.Jobs {
		s.Jobs[i].Saves = time.Minute
		if len(s.Jobs[i].Gang.Members) > 1 {
			s.Jobs[i].Share = 700
		}
	}
}

// The gang of two nodes starts in two racks, where a nominal second takes 1.1 s; it assembles for 4 s and trains for
// 146 s until a node fails: two checkpoints are 120 s of training, or 109 of its 200 s of work. It starts again in one
// rack: 4 s, and 60 s to reload, and the 91 s that are left.
//
//	n1 |a 4|train 146 (120 kept)|            |a 64|train 91|
//	n2 |a 4|train 146 (120 kept)|x
//	n3                                       |a 64|train 91|    (n1 in the first rack, n2 and n3 in the second)
func TestCosts_ByHand(t *testing.T) {
	for ended, unfinished := range map[int]int{355: 0, 354: 1} {
		s := racks(t, 4)
		add(s, 0, 200, 2, 4)
		costly(s)
		tally := listen(s)
		tally.job(0, engine.Submitted, 0)
		tally.job(0, engine.Started, 0, 1, 2)
		tally.node(150, engine.NodesFailed, 2)
		tally.job(150, engine.Disrupted, 0)
		tally.node(180, engine.NodesReturned, 2)
		tally.job(200, engine.Started, 0, 2, 3)
		tally.job(ended, engine.Ended, 0)
		card := tally.card()
		if card.Violations.Unfinished != unfinished {
			t.Errorf("ended at %d: %d unfinished runs, want %d", ended, card.Violations.Unfinished, unfinished)
		}
		if unfinished > 0 {
			continue
		}
		const hours = 8 / 3600.0 // of a gang's second
		slowed := 146 - 146/1.1
		lost := (146 - 120) / 1.1
		useful := 120/1.1 + 91
		equal(t, card, map[string]float64{
			"costs.startup_gpu_hours":        (4 + 64) * hours,
			"costs.slowdown_gpu_hours":       slowed * hours,
			"costs.mean_slowdown":            (146 + 91) / (146 + 91 - slowed),
			"costs.disrupted_gpu_hours":      lost * hours,
			"costs.preempted_gpu_hours":      0,
			"preemption.disrupted_gpu_hours": lost * hours,
			"costs.restarts":                 1,
			"costs.failed_nodes":             1,
			"goodput.mean":                   useful * 8 / (16*355 - 4*30),
		})
	}
}

// The same gang with its lost member replaced: from 150 to 200 it holds one node and trains nothing, and then has node
// 3 besides.
func TestCosts_Replacement(t *testing.T) {
	s := racks(t, 4)
	add(s, 0, 200, 2, 4)
	costly(s)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 1, 2)
	tally.node(150, engine.NodesFailed, 2)
	tally.job(150, engine.Paused, 0, 2)
	tally.job(200, engine.Joined, 0, 1, 3)
	tally.job(365, engine.Ended, 0) // 4 + 60 to resume, and 91 · 1.1 in two racks
	card := tally.card()
	const hours = 8 / 3600.0
	slowed := (146 + 101) - (146+101)/1.1
	equal(t, card, map[string]float64{
		"costs.paused_gpu_hours":    4 * 50 / 3600.0,
		"costs.startup_gpu_hours":   (4 + 64) * hours,
		"costs.slowdown_gpu_hours":  slowed * hours,
		"costs.disrupted_gpu_hours": (146 - 120) / 1.1 * hours,
		"costs.restarts":            1,
		"preemption.disrupted":      1,
		"goodput.mean":              (120 + 101) / 1.1 * 8 / (16*365 - 4*215),
	})
	if card.Violations != (measure.Violations{}) {
		t.Errorf("violations %+v", card.Violations)
	}
}

// Work in progress at the end of the run counts so far: 96 of 100 s of a run on one node; 50 s of them fit into two
// racks' 55 s.
func TestCosts_WorkThatGoesOn(t *testing.T) {
	s := racks(t, 4)
	add(s, 0, 200, 2, 4)
	costly(s)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 1, 2)
	tally.job(59, engine.Refused, 0)
	equal(t, tally.card(), map[string]float64{"goodput.mean": 50 * 8 / (16 * 59.0), "costs.mean_slowdown": 1.1})
}

// runs records the durations of runs.
type runs struct {
	*measure.Tally
	t     *testing.T
	scene *scenario.Scenario
	began map[int]time.Duration
	ended int
}

func (r *runs) Happens(e engine.Event) {
	r.Tally.Happens(e)
	switch e.Kind {
	case engine.Started, engine.Joined:
		r.began[e.Job] = e.At
	case engine.Ended:
		r.ended++
		if took, most := e.At-r.began[e.Job], r.scene.Jobs[e.Job].Estimate; took > most {
			r.t.Errorf("job %d ran for %s, and its owner says %s at most", e.Job, took, most)
		}
	default:
	}
}

// In random scenes with all costs of time, the ledger finds that all work is done, parts sum up to the use, goodput is
// below allocation, owners' deadlines stay bounds, and a seed gives the same each time.
func TestCosts_Random(t *testing.T) {
	f, err := fleet.Open("h100-64")
	if err != nil {
		t.Fatal(err)
	}
	var paused float64
	for seed := range uint64(4) {
		costs := cost.Settings{
			Slowdown: 2000, Startup: 1000, Failures: 20_000, Checkpoint: 900, Replace: seed%2 == 1,
		}
		var first measure.Scorecard
		for again := range 2 {
			s, err := importer.New(f, mixed(seed), scenario.Options{Seed: seed, Estimates: 1, Costs: costs})
			if err != nil {
				t.Fatal(err)
			}
			watch := &runs{measure.New(s, measure.Header{}), t, s, make(map[int]time.Duration), 0}
			e := direct.NewEngine(direct.Options{Preempt: true}, func() time.Time { return time.Unix(0, 0) })
			if err := e.Run(t.Context(), s, watch); err != nil {
				t.Fatal(err)
			}
			card := watch.Scorecard(0)
			if again == 0 {
				first = card
				check(t, card, watch.ended, len(s.Jobs))
				paused += card.Costs.PausedGPUHours
			} else if !reflect.DeepEqual(first, card) {
				t.Errorf("seed %d gives another scorecard", seed)
			}
		}
	}
	if paused == 0 {
		t.Error("no gang ever held places while members were replaced")
	}
}

func check(t *testing.T, card measure.Scorecard, ended, jobs int) {
	t.Helper()
	c := card.Costs
	switch {
	case ended != jobs || card.Violations != measure.Violations{}:
		t.Errorf("%d of %d jobs ended; violations %+v", ended, jobs, card.Violations)
	case card.Goodput.Mean >= card.Utilization.Mean || c.MeanSlowdown <= 1 || c.Restarts == 0 || c.FailedNodes == 0:
		t.Errorf("goodput %v of %v, costs %+v", card.Goodput.Mean, card.Utilization.Mean, *c)
	}
	used := card.Goodput.GPUHours * card.Utilization.Mean / card.Goodput.Mean
	sum := card.Goodput.GPUHours + c.SlowdownGPUHours + c.StartupGPUHours + c.PreemptedGPUHours + c.DisruptedGPUHours +
		c.PausedGPUHours
	if !c.Replace && c.PausedGPUHours > 0 {
		t.Errorf("gangs held %v GPU-hours while members were replaced, and none are", c.PausedGPUHours)
	}
	if math.Abs(used-sum) > used/1e6 {
		t.Errorf("%v GPU-hours are in use, and the parts are %v", used, sum)
	}
}

// mixed is a trace of gangs of one to sixteen nodes, with preemptions.
func mixed(seed uint64) trace.Trace {
	chance := rand.New(rand.NewPCG(seed, 1))
	t := trace.Trace{Name: "mixed", Synthetic: true}
	at := time.Duration(0)
	for i := range 400 {
		at += time.Duration(chance.IntN(400)) * time.Second
		t.Jobs = append(t.Jobs, trace.Job{
			ID: fmt.Sprintf("job-%03d", i), Submit: at, Duration: time.Duration(60+chance.IntN(7200)) * time.Second,
			Podsets:     []trace.Podset{{Count: 1 << chance.IntN(5), GPUs: cmp.Or(8*chance.IntN(2), 4), CPU: 1000}},
			Priority:    int32(chance.IntN(2)),
			Preemptible: chance.IntN(2) == 0,
		})
	}
	return t
}
