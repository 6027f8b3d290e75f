package kube_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/scene"
	"github.com/lockstep-project/lockstep/simulator/trace"
)

// What is known to be different:
//
//   - what becomes free is gathered for a moment before those that wait are asked;
//   - who preempted somebody pauses in the scheduling queue for a second, rounded up to whole ones, and others that have room
//     beside it start before it. The place that is kept meanwhile is its own, so these may be others than in the core, where it is
//     started at once and the next one's place is kept;
//   - time alone changes nothing for the scheduler: it is told of changes, and looks at those that wait every five minutes, half a minute
//     later at most. The core asks again whenever anything happens, and what may pass the first of the queue may be another thing by then.
const (
	gathers = 50 * time.Millisecond
	pauses  = 2 * time.Second
	looks   = 5*time.Minute + 30*time.Second
)

// The decision core alone and the real scheduler with our plugins decide alike: the same gangs, in the same order, on the same nodes,
// rank by rank, and at instants that differ by no more than what is known of.
func TestEnginesAgree(t *testing.T) {
	const scenes = 16
	whole := 0
	for seed := range uint64(scenes) {
		options := scene.Options{Seed: seed}
		if seed%2 == 0 {
			options.Estimates = 1 + float64(seed%3)
		}
		workload := sparse(seed, 13)
		if seed%4 == 3 {
			workload.Events = outages(seed)
		}
		s := set(t, "gb200-72", options, workload)
		core := run(t.Context(), t, s, direct.NewEngine(direct.Options{Preempt: true}, clock.RealClock{}))
		until := agree(t, s, seed, core, play(t, s, kube.Lockstep))
		if until == "" {
			whole++
		} else {
			t.Logf("scene %d was compared until %s", seed, until)
		}
	}
	if whole < 10 {
		t.Errorf("only %d of %d scenes were compared to their ends", whole, scenes)
	}
}

// agree compares what two engines told of a scene, instant by instant of the core. It returns how far it came, if not to the end.
func agree(t *testing.T, s *scene.Scene, seed uint64, core, sched *record) string {
	t.Helper()
	a, b := moves(core), moves(sched)
	if len(a) != len(b) {
		t.Logf("scene %d: %d steps of the core, %d of the scheduler", seed, len(a), len(b))
	}
	late := time.Duration(0)
	for i := 0; i < len(a); {
		n := 1
		for i+n < len(a) && a[i+n].At == a[i].At {
			n++
		}
		x, y := slices.Clone(a[i:i+n]), slices.Clone(b[i:min(i+n, len(b))])
		happened := func(k engine.Kind) bool {
			return slices.ContainsFunc(x, func(e engine.Event) bool { return e.Kind == k })
		}
		if happened(engine.Preempted) {
			late += pauses
			if !slices.EqualFunc(x, y, func(a, b engine.Event) bool { return a.Kind == b.Kind && a.Job == b.Job }) {
				return besides(t, s, x, sched, late)
			}
		}
		freed := happened(engine.Ended) || happened(engine.Disrupted) || happened(engine.Preempted) ||
			happened(engine.NodesReturned)
		for k, e := range x {
			came := slices.ContainsFunc(
				x,
				func(o engine.Event) bool { return o.Kind == engine.Submitted && o.Job == e.Job },
			)
			if e.Kind == engine.Started && !freed && !came {
				if !startsIn(sched, e, looks+late) {
					t.Fatalf(
						"scene %d: by time alone %s in the core, and not soon after for the scheduler",
						seed,
						line(s, e),
					)
				}
				return line(s, e) + ", by time alone"
			}
			if e.Kind == engine.Started {
				late += gathers
			}
			if k >= len(y) || e.Kind != y[k].Kind || e.Job != y[k].Job || !slices.Equal(e.Nodes, y[k].Nodes) {
				t.Fatalf(
					"scene %d: the core had\n%s\nand the scheduler\n%s",
					seed,
					told(s, a[:i+n]),
					told(s, b[:min(i+n, len(b))]),
				)
			}
			if d := y[k].At - e.At; d < 0 || d > late {
				t.Fatalf("scene %d: %s in the core, %s for the scheduler: %s later, of which %s are known", seed,
					line(s, e), line(s, y[k]), d, late)
			}
		}
		i += n
	}
	if len(a) != len(b) {
		t.Errorf("scene %d: the scheduler went on", seed)
	}
	return ""
}

// besides is for an instant at which others start while who preempted pauses: it has to start all the same.
func besides(t *testing.T, s *scene.Scene, core []engine.Event, sched *record, late time.Duration) string {
	t.Helper()
	first := slices.IndexFunc(core, func(e engine.Event) bool { return e.Kind == engine.Started })
	if first < 0 || !startsIn(sched, core[first], late) {
		t.Fatalf("who preempted does not start:\n%s", told(s, core))
	}
	return line(s, core[first]) + ", beside which others start"
}

// startsIn reports whether the job starts by an instant that much later.
func startsIn(r *record, e engine.Event, late time.Duration) bool {
	return slices.ContainsFunc(r.events, func(o engine.Event) bool {
		return o.Kind == engine.Started && o.Job == e.Job && o.At >= e.At && o.At <= e.At+late
	})
}

// moves are the events by which anything changes.
func moves(r *record) []engine.Event {
	return slices.DeleteFunc(slices.Clone(r.events), func(e engine.Event) bool {
		return e.Kind == engine.Kept || e.Kind == engine.Refused
	})
}

// told are the last events as text, with nodes.
func told(s *scene.Scene, events []engine.Event) string {
	var lines []string
	for _, e := range events[max(0, len(events)-8):] {
		lines = append(lines, fmt.Sprint(line(s, e), " ", e.Nodes))
	}
	return strings.Join(lines, "\n")
}

// sparse is a random workload for the default fleet, several times what it can hold at once, whose instants are far apart: what the
// scheduler does a moment later than the core must not come after something else of the trace.
func sparse(seed uint64, n int) trace.Trace {
	chance := rand.New(rand.NewPCG(seed, 11))
	levels := []string{"", rack, "tier-0", rack}
	var t trace.Trace
	for i := range n {
		j := whole(fmt.Sprintf("j%02d", i), seconds(chance, 0, 8_000), seconds(chance, 500, 4_000), 1+chance.IntN(18))
		j.Required = levels[chance.IntN(len(levels))]
		if chance.IntN(12) == 0 {
			j.Priority = 10
		}
		if chance.IntN(5) == 0 {
			j.Required, j.Podsets[0].Count = "", 20+chance.IntN(50)
		}
		t.Jobs = append(t.Jobs, j)
	}
	return t
}

// outages are of three nodes, each for a while.
func outages(seed uint64) []trace.Event {
	chance := rand.New(rand.NewPCG(seed, 12))
	var events []trace.Event
	for rack := 1; rack <= 3; rack++ {
		at, node := seconds(chance, 500, 6_000), fmt.Sprintf("rack-%d-tray-%02d", rack, 1+chance.IntN(18))
		events = append(events,
			trace.Event{At: at, Kind: trace.Fail, Nodes: []string{node}},
			trace.Event{At: at + seconds(chance, 300, 2_000), Kind: trace.Return, Nodes: []string{node}})
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return int(a.At - b.At) })
	return events
}

func seconds(chance *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+chance.IntN(to-from)) * time.Second
}
