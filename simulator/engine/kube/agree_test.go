package kube_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/engine/scenarios"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// The machine of the queue alone and the real scheduler with our plugins give equal events in every scenario.
func TestEnginesAgree_InNamedScenarios(t *testing.T) {
	for _, of := range scenarios.All() {
		t.Run(of.Name, func(t *testing.T) {
			s, err := of.Build()
			if err != nil {
				t.Fatal(err)
			}
			compare(t, s)
		})
	}
}

// They do in randomly generated ones.
func TestEnginesAgree(t *testing.T) {
	for seed := range *seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.Random(seed+*first, *size)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, s)
		})
	}
}

// They do if victims need time to leave.
func TestEnginesAgree_Graces(t *testing.T) {
	for seed := range *others {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.RandomGraces(seed+*first, *size)
			if err != nil {
				t.Fatal(err)
			}
			has(t, compare(t, s), engine.Evicted)
		})
	}
}

// They agree if waiting gangs are suspended and resumed.
func TestEnginesAgree_Suspensions(t *testing.T) {
	for seed := range *others {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.RandomSuspensions(seed+*first, *size)
			if err != nil {
				t.Fatal(err)
			}
			has(t, compare(t, s), engine.Suspended, engine.Resumed)
		})
	}
}

// They do if most gangs are trials of sweeps with limits, in part with different ones.
func TestEnginesAgree_Sweeps(t *testing.T) {
	for seed := range *others {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.RandomGraces(seed+*first, *size)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, 1))
			for i := range s.Jobs {
				if of := r.IntN(4); of > 0 {
					s.Jobs[i].Sweep = scenario.Sweep{
						Name:  fmt.Sprintf("default/sweep-%d", of),
						Limit: of + r.IntN(10)/9,
					}
				}
			}
			compare(t, s)
		})
	}
}

// They do in the trace of sweeps.
func TestEnginesAgree_TraceOfSweeps(t *testing.T) {
	machines, err := fleet.Open("h100-64")
	if err != nil {
		t.Fatal(err)
	}
	s, err := importer.New(machines, trace.Sweeps(1), scenario.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, s)
}

// They do if placements, starts and restarts cost time, and jobs that end before their time resume from checkpoints.
func TestEnginesAgree_Costs(t *testing.T) {
	costs := cost.Settings{Slowdown: 2000, Startup: 1000, Checkpoint: 600}
	for seed := range *others {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.RandomCosts(seed+*first, *size, costs)
			if err != nil {
				t.Fatal(err)
			}
			has(t, compare(t, s), engine.Disrupted)
		})
	}
}

// They do in the discipline promise.
func TestEnginesAgree_Promise(t *testing.T) {
	for seed := range *others {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.RandomGraces(seed+*first, *size)
			if err != nil {
				t.Fatal(err)
			}
			compareWith(
				t,
				s,
				direct.Options{Preempt: true, Discipline: direct.Promise},
				kube.Options{Profile: kube.Lockstep, Discipline: config.Promise},
			)
		})
	}
}

// They do if run times are learned, of gangs that declare none and of such that do.
func TestEnginesAgree_Learns(t *testing.T) {
	for seed := range *others / 2 {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s, err := scenarios.RandomGraces(seed+*first, *size)
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Jobs { // three in four declare nothing
				if i%4 != 0 {
					s.Jobs[i].Estimate = 0
				}
			}
			compareWith(
				t,
				s,
				direct.Options{Preempt: true, Learns: true},
				kube.Options{Profile: kube.Lockstep, Learns: true},
			)
		})
	}
}

// compare plays a scenario with both engines. All events are equal: kind, instant, jobs, and the node of each rank.
// They are returned.
func compare(t *testing.T, s *scenario.Scenario) []engine.Event {
	t.Helper()
	return compareWith(t, s, direct.Options{Preempt: true}, kube.Options{Profile: kube.Lockstep})
}

func compareWith(t *testing.T, s *scenario.Scenario, direction direct.Options, profile kube.Options) []engine.Event {
	t.Helper()
	began := time.Now()
	a := run(t.Context(), t, s, direct.NewEngine(direction, time.Now))
	between := time.Now()
	b := playWith(t, s, profile)
	core, sched := together(a.events), together(b.events)
	t.Logf("%d events; direct took %v for %d decisions, kube %v for %d",
		len(core), between.Sub(began), len(a.decisions), time.Since(between), len(b.decisions))
	for i := range max(len(core), len(sched)) {
		if i < len(core) && i < len(sched) && equal(core[i], sched[i]) {
			continue
		}
		t.Fatalf("event %d: direct has\n%s\nkube has\n%s", i, told(s, core, i), told(s, sched, i))
	}
	return core
}

// has checks that events of these kinds happened.
func has(t *testing.T, events []engine.Event, kinds ...engine.Kind) {
	t.Helper()
	for _, kind := range kinds {
		if !slices.ContainsFunc(events, func(e engine.Event) bool { return e.Kind == kind }) {
			t.Errorf("nothing is %s", kind)
		}
	}
}

// together puts the victims that leave for one job in the order of their names: their evictions begin at once.
func together(events []engine.Event) []engine.Event {
	for i := 0; i < len(events); {
		end := i + 1
		for end < len(events) && isVictims(events[i]) && isVictims(events[end]) && events[end].At == events[i].At {
			end++
		}
		slices.SortFunc(events[i:end], func(a, b engine.Event) int { return a.Job - b.Job })
		i = end
	}
	return events
}

// isVictims reports whether a job leaves for another one, or begins to.
func isVictims(e engine.Event) bool { return e.Kind == engine.Preempted || e.Kind == engine.Evicted }

func equal(a, b engine.Event) bool {
	return a.At == b.At && a.Kind == b.Kind && a.Job == b.Job && a.Running == b.Running && a.From == b.From &&
		slices.Equal(a.Nodes, b.Nodes)
}

// told returns the events around one as text, with nodes.
func told(s *scenario.Scenario, events []engine.Event, at int) string {
	const around = 12
	var lines []string
	for i := max(0, at-around); i < min(len(events), at+around); i++ {
		e, mark := events[i], "  "
		if i == at {
			mark = "> "
		}
		text := fmt.Sprint(mark, line(s, e), " ", e.Nodes)
		if e.Kind == engine.Leased {
			text += fmt.Sprint(" from ", e.From)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}
