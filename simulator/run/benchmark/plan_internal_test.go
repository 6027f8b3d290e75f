package benchmark

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
)

// The planned comparisons are there, and each can be played.
func TestPlan(t *testing.T) {
	seeds := map[string]int{}
	for _, e := range plan() {
		if seeds[e.name] != 0 {
			t.Errorf("two comparisons are named %s", e.name)
		}
		seeds[e.name] = len(e.seeds)
		if e.schedulers[0] != schedulers.Lockstep {
			t.Errorf("%s: the first scheduler is %s", e.name, e.schedulers[0])
		}
		if strings.HasSuffix(e.name, "-none") != (e.options.Silent == 1) ||
			strings.HasSuffix(e.name, "-half") != (e.options.Silent == 0.5) {
			t.Errorf("%s: %g of the owners are silent", e.name, e.options.Silent)
		}
		for _, of := range []string{"philly", "acme", "c1", "c2", "c3", "gangs"} {
			if strings.HasPrefix(e.name, of) && e.engine == "" && e.options.Costs.Slowdown != published {
				t.Errorf("%s: bad places cost nothing", e.name)
			}
		}
		for _, name := range e.few {
			if slices.Contains(e.schedulers, name) {
				t.Errorf("%s: %s plays all seeds and some", e.name, name)
			}
		}
		input, err := simulation.Open(e.names, e.options)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		c := simulation.Comparison{Schedulers: e.all(), Seeds: e.seeds, Engine: e.engine, Wall: clock.RealClock{}}
		if err := input.Check(c); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
		if e.engine == "" && slices.Contains(e.schedulers, schedulers.NativeTAS) && len(e.seeds) > usual {
			t.Errorf("%s: the native scheduler plays %d seeds", e.name, len(e.seeds))
		}
	}
	for name, want := range map[string]int{
		"philly-1.0": 5, "philly-1.3": 10, "philly-1.6": 5, "acme-kalos": 5, "c1": 10, "c2": 5, "c3": 10, "starving-512": 5,
		"service": 10, "gangs-c3": 5,
	} {
		for _, suffix := range []string{"", "-half", "-none"} {
			if seeds[name+suffix] != want {
				t.Errorf("%s has %d seeds, want %d", name+suffix, seeds[name+suffix], want)
			}
		}
	}
	for _, name := range []string{"philly-1.3-native", "gangs-h100-native", "c3-wishes", "c1-checkpoints"} {
		if seeds[name] == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestEntry_Commands(t *testing.T) {
	e := entry{
		names:      simulation.Names{Fleet: "c3", Trace: "gangs-2000"},
		options:    simulation.Options{Load: 2.2, Estimates: 3, Silent: 0.5, Wishes: true, First: 100},
		schedulers: []string{"lockstep", "slurm-block"}, few: []string{"random"}, seeds: upTo(5),
	}
	want := []string{
		"lockstep compare --fleet c3 --trace gangs-2000 --load 2.2 --estimates 3 --declared 0.5 --wishes --first 100 " +
			"--schedulers lockstep,slurm-block --seeds 1,2,3,4,5",
		"lockstep compare --fleet c3 --trace gangs-2000 --load 2.2 --estimates 3 --declared 0.5 --wishes --first 100 " +
			"--schedulers lockstep,random --seeds 1,2,3",
	}
	if got := e.commands(); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	costly := entry{
		names: e.names, schedulers: e.schedulers, seeds: upTo(1),
		options: simulation.Options{Costs: cost.Settings{Slowdown: 1000, Startup: 500, Checkpoint: 1800}},
	}
	const flags = "lockstep compare --fleet c3 --trace gangs-2000 --slowdown on --startup 0.5 --checkpoint 30m " +
		"--schedulers lockstep,slurm-block --seeds 1"
	if got := costly.commands(); !slices.Equal(got, []string{flags}) {
		t.Errorf("%q\nwant %q", got, flags)
	}
}
