package schedulers_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
)

var rewrite = flag.Bool("rewrite", false, "write the table of sweeps into docs/sweeps.md")

// tally counts the events of a scenario's jobs.
type tally struct {
	s                 *scenario.Scenario
	started, ended    []time.Duration
	running, together map[string]int
}

func (a *tally) Decides(engine.Decision) {}

// Happens notes starts and ends. Jobs of this trace start once.
func (a *tally) Happens(e engine.Event) {
	if e.Job == engine.None {
		return
	}
	sweep := a.s.Jobs[e.Job].Sweep.Name
	switch e.Kind {
	case engine.Started:
		a.started[e.Job] = e.At
		a.running[sweep]++
		a.together[sweep] = max(a.together[sweep], a.running[sweep])
	case engine.Ended:
		a.ended[e.Job] = e.At
		a.running[sweep]--
	default:
	}
}

// sweepsPlayed plays the trace "sweeps" by a scheduler.
func sweepsPlayed(t *testing.T, name string, seed uint64) *tally {
	t.Helper()
	machines, err := fleet.Open("h100-64")
	if err != nil {
		t.Fatal(err)
	}
	s, err := importer.New(machines, trace.Sweeps(seed), scenario.Options{Load: 1, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	by, err := schedulers.Open(schedulers.Ask{Name: name, Nodes: 64, Seed: seed}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	a := &tally{
		s: s, started: make([]time.Duration, len(s.Jobs)), ended: make([]time.Duration, len(s.Jobs)),
		running: make(map[string]int), together: make(map[string]int),
	}
	if err := by.Engine.Run(t.Context(), s, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// figures are means over seeds, in minutes.
type figures struct {
	others, most, trials, sweep time.Duration
	together                    int
}

// add adds the figures of one run.
func (f *figures) add(a *tally) {
	var others, trials []time.Duration
	ends := make(map[string]time.Duration)
	for i, j := range a.s.Jobs {
		wait := a.started[i] - j.Submit
		if j.Sweep.Name == "" {
			others = append(others, wait)
			continue
		}
		trials = append(trials, wait)
		ends[j.Sweep.Name] = max(ends[j.Sweep.Name], a.ended[i]-j.Submit)
	}
	slices.Sort(others)
	f.others += mean(others)
	f.most += others[len(others)*95/100]
	f.trials += mean(trials)
	for _, took := range ends {
		f.sweep += took / time.Duration(len(ends))
	}
	for sweep, n := range a.together {
		if sweep != "" {
			f.together = max(f.together, n)
		}
	}
}

func mean(of []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range of {
		sum += d
	}
	return sum / time.Duration(len(of))
}

const sweepSeeds = 5

// The gains and losses of the limit of sweeps, as in docs/sweeps.md.
func TestSweeps_LimitHelpsOthersAndDelaysTrials(t *testing.T) {
	var table strings.Builder
	table.WriteString("scheduler           others wait  95 in 100   trials wait  a sweep takes  trials at once\n")
	of := make(map[string]figures)
	for _, name := range []string{"lockstep", "lockstep:unlimited", "lockstep:greedy", "first-fit"} {
		var f figures
		for seed := range uint64(sweepSeeds) {
			f.add(sweepsPlayed(t, name, seed+1))
		}
		of[name] = f
		minutes := func(d time.Duration) string { return fmt.Sprintf("%.0f min", d.Minutes()/sweepSeeds) }
		fmt.Fprintf(&table, "%-18s %12s %10s %13s %14s %15d\n",
			name, minutes(f.others), minutes(f.most), minutes(f.trials), minutes(f.sweep), f.together)
	}
	page.Page{
		File: "docs/sweeps.md", Marker: "go test ./simulator/policy/schedulers", Write: *rewrite,
		Mend: "go test ./simulator/policy/schedulers -run TestSweeps -args -rewrite",
	}.Has(t, map[string]string{"sweeps": strings.TrimSuffix(table.String(), "\n")})
	with, without := of["lockstep"], of["lockstep:unlimited"]
	if with.together != 8 || of["lockstep:greedy"].together > 8 {
		t.Errorf("%d trials of a sweep run at once, want 8", with.together)
	}
	if with.others >= without.others || with.trials <= without.trials {
		t.Errorf("with the limit: %+v; without: %+v", with, without)
	}
}
