package kube_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/engine/scenetest"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

const scenesFolder = "../../../scheduler/contention/testdata/scenes"

// unplayed names the scenes that engines do not play: the part that a scenario cannot express, and the test that covers
// the scene on the real scheduler.
func unplayed() map[string]string {
	const shrinks = "members that leave alone: the engine takes whole jobs away; scheduler/gangpreemption TestElasticGang_ShrinksAndGrows"
	return map[string]string{
		"09_move.txt":                     "hold: jobs of a scenario lose all members or none; scheduler/waiting TestReservation_OfAMoveExpires",
		"53_elastic_shrinks.txt":          shrinks,
		"54_elastic_is_cheaper_whole.txt": shrinks,
		"55_growing_pays.txt":             shrinks,
		"61_elastic_starts_small.txt":     shrinks,
		"46_preemption_of_savers.txt":     "checkpoints: no trace has any",
		"43_outranked.txt":                "hold: jobs of a scenario lose no members by themselves",
		"44_unearned.txt":                 "hold: jobs of a scenario lose no members by themselves; scheduler/gangqueue TestGangQueue_PlacesOfGangsThatHardlyRan",
		"42_crash_in_a_place.txt":         "hold: jobs of a scenario lose no members by themselves; scheduler/devices TestReservation_CoversDevicesOfOtherClaims",
		"59_sweep_lost_rank.txt":          "finish: jobs of a scenario end by themselves only; scheduler/waiting TestSweep_LostTrialKeepsItsTurn",
		"10_rank_exits.txt": "hold: jobs of a scenario lose all members or none; scheduler/gangplacement " +
			"TestReplacement_SeveralMembersByOnePlan has the part that lost members come back, and scheduler/gangqueue " +
			"TestGangQueue_PlacesOfLostMembers that a younger gang waits meanwhile",
		"11_stuck_start.txt": "stall: members of an engine's jobs start at once; scheduler/incompletegangs " +
			"TestIncompleteGangs_EvictedAfterGrace",
		"19_late_member.txt": "hold: all members of a scenario's jobs arrive with it; scheduler/gangplacement " +
			"TestLateMembers_LauncherPlaceIsReserved",
		"63_late_member_outranked.txt": "hold: all members of a scenario's jobs arrive with it; scheduler/gangplacement " +
			"TestLateMembers_LauncherPlaceYieldsToPriority",
		"62_fail_over.txt": "fail-over: a scenario is played by one scheduler; scheduler/waiting TestFailover_ReservedPlaceSurvives, " +
			"and the stored evictions in scheduler/contention TestMachine_SurvivesFailOver",
	}
}

// inexpressible returns the part of a scene that a scenario cannot express, "" for none.
func inexpressible(s contentiontest.Scene) string {
	for _, e := range s.Events {
		switch e.Kind {
		case contentiontest.Fail, contentiontest.Return, contentiontest.Cordon, contentiontest.Extend,
			contentiontest.Suspend, contentiontest.Restore, contentiontest.Resume:
		default:
			return string(e.Kind)
		}
	}
	for _, j := range s.Jobs {
		if arrives(j) && (j.Certainty == contention.Never || j.Certainty == contention.Predicted) {
			return "certainty"
		}
		if j.Elastic {
			return "members that leave alone"
		}
		if j.Saves > 0 {
			return "checkpoints"
		}
	}
	return ""
}

// TestEngines_PlayScenes plays the scenes of the queue with the machine's own player, with engine direct and with the
// real scheduler. Both engines report equal events. The same jobs start, end, leave and have closed leases at the same
// instants, on the same nodes, as in the player, which checks the invariants after each round.
func TestEngines_PlayScenes(t *testing.T) {
	left := unplayed()
	datadriven.Walk(t, scenesFolder, func(t *testing.T, path string) {
		t.Helper()
		name := filepath.Base(path)
		script := scenetest.ReadScene(t, path)
		what, reason := inexpressible(script.Scene), left[name]
		delete(left, name)
		if before, _, _ := strings.Cut(reason, ":"); before != what {
			t.Errorf(
				"the scene has %q, which a scenario cannot express, and its row in unplayed is %q: want one like \"%s: why; test\"",
				what,
				reason,
				what,
			)
		}
		if what != "" {
			return
		}
		if !*long && len(script.Scene.Jobs) > manyJobs {
			t.Skipf("%d jobs; play them with -long", len(script.Scene.Jobs))
		}
		for _, difference := range playScene(t, script) {
			t.Error(difference)
		}
	})
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // not all scenes
	}
	for name := range left {
		t.Errorf("there is no scene %s", name)
	}
}

// manyJobs bounds the jobs of a scene that is played without -long. The scene with the most takes engine kube five
// minutes.
const manyJobs = 5_000

// playScene plays a scene in all three ways, and returns the first differences.
func playScene(t *testing.T, script scenetest.Script) []string {
	t.Helper()
	p := scenarioOf(t, script.Scene, script.Until)
	p.discipline = script.Policy.Discipline
	player, err := contentiontest.NewPlayer(p.Scene, script.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if err = player.Play(p.until); err != nil {
		t.Fatal(err)
	}
	discipline := script.Options().Discipline.String()
	k, err := kube.New(kube.Options{Profile: kube.Lockstep, Discipline: discipline, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	core := p.run(t, direct.NewEngine(script.Options(), time.Now))
	between := time.Now()
	sched := p.run(t, k)
	t.Logf("%d moves, %d events; direct took %v, kube %v",
		len(player.Moves), len(core), between.Sub(began), time.Since(between))
	p.checkRules(t, player, sched)
	var found []string
	for i := range max(len(core), len(sched)) {
		if i >= len(core) || i >= len(sched) || !equal(core[i], sched[i]) {
			found = append(found, fmt.Sprintf("event %d: direct has\n%s\nkube has\n%s",
				i, told(p.of, core, i), told(p.of, sched, i)))
			break
		}
	}
	if diff := p.compareMoves(player, p.moves(t, core)); diff != "" {
		found = append(found, "direct: "+diff)
	}
	if diff := p.compareMoves(player, p.moves(t, sched)); diff != "" {
		found = append(found, "kube: "+diff)
	}
	return found
}

// compareMoves returns the first difference between the player's moves and those of an engine, "" for none.
func (p played) compareMoves(player *contentiontest.Player, moves []contentiontest.Move) string {
	moves = slices.DeleteFunc(moves, func(m contentiontest.Move) bool { return m.At < p.first() })
	want, got := texts(ordered(player.Moves)), texts(ordered(moves))
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			return fmt.Sprintf("move %d: the machine has\n%s\nthe engine has\n%s\nthe machine's log is\n%s",
				i, around(want, i), around(got, i), strings.Join(player.Log[:min(len(player.Log), 100)], "\n"))
		}
	}
	return ""
}

// first returns the first instant at which the player does anything: units that run when the scene begins wait for it
// with their surplus.
func (p played) first() int64 {
	first := p.until
	for _, j := range p.Jobs {
		if j.On == nil {
			first = min(first, j.Arrives)
		}
	}
	for _, e := range p.Events {
		first = min(first, e.At)
	}
	return first
}

// cut records events up to an instant, and stops the engine beyond it.
type cut struct {
	record

	last time.Duration
	stop func()
}

func (c *cut) Happens(e engine.Event) {
	if e.At > c.last {
		c.stop()
		return
	}
	c.record.Happens(e)
}

// run plays the scene with an engine until the last instant of the script.
func (p played) run(t *testing.T, e engine.Engine) []engine.Event {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &cut{last: p.offset(p.until), stop: stop}
	if err := e.Run(ctx, p.of, c); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return together(c.events)
}

// moves converts events to moves. The scene's initial runs do not start.
func (p played) moves(t *testing.T, events []engine.Event) []contentiontest.Move {
	t.Helper()
	begun, runs := make(map[string][]int), make(map[string][]int)
	for _, j := range p.Jobs {
		if j.On != nil && arrives(j) {
			begun[j.Name] = j.On
		}
	}
	var out []contentiontest.Move
	for _, e := range events {
		m := contentiontest.Move{At: p.at(e.At), Job: p.name(e), Instant: contention.None}
		switch e.Kind {
		case engine.Started, engine.Joined:
			m.Kind, m.Nodes = contentiontest.Starts, e.Nodes[len(runs[m.Job]):]
			runs[m.Job] = e.Nodes
			if on, ran := begun[m.Job]; ran {
				delete(begun, m.Job)
				if !slices.Equal(slices.Sorted(slices.Values(m.Nodes)), slices.Sorted(slices.Values(on))) {
					t.Errorf("%s runs on %v, the scene has it on %v", m.Job, m.Nodes, on)
				}
				continue
			}
		case engine.Ended:
			m.Kind = contentiontest.Ends
		case engine.Evicted:
			m.Kind = contentiontest.Evicts
		case engine.Preempted, engine.Disrupted:
			m.Kind = contentiontest.Leaves
		case engine.Leased:
			m.Kind, m.Nodes = contentiontest.Leases, e.Nodes
			if e.From != scenario.Forever {
				m.Instant = p.at(e.From)
			}
		default:
			continue
		}
		if m.Kind == contentiontest.Ends || m.Kind == contentiontest.Leaves {
			delete(runs, m.Job)
		}
		out = append(out, m)
	}
	return out
}

// name returns the job of an event as the script names it.
func (p played) name(e engine.Event) string {
	switch {
	case e.Job != engine.None:
		return p.of.Jobs[e.Job].ID
	case e.Running != engine.None:
		return strings.TrimPrefix(p.of.Running[e.Running].Name, "default/")
	}
	return ""
}

// ordered puts moves of one instant in the order of their kinds, and all but starts in that of names: units of one
// instant end at once. Of the leases of a job at one instant the last counts.
func ordered(moves []contentiontest.Move) []contentiontest.Move {
	kinds := []contentiontest.MoveKind{
		contentiontest.Ends, contentiontest.Leaves, contentiontest.Evicts, contentiontest.Starts,
		contentiontest.Leases, contentiontest.Opens,
	}
	moves = slices.Clone(moves)
	slices.SortStableFunc(moves, func(a, b contentiontest.Move) int {
		byKind := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)))
		if byKind == 0 && a.Kind != contentiontest.Starts {
			return cmp.Compare(a.Job, b.Job)
		}
		return byKind
	})
	var out []contentiontest.Move
	leases := make(map[string]contentiontest.Move)
	for i, m := range moves {
		switch m.Kind {
		case contentiontest.Opens:
			continue // engines do not report it
		case contentiontest.Leases:
			if i+1 < len(moves) && moves[i+1].At == m.At && moves[i+1].Job == m.Job {
				continue
			}
			was, known := leases[m.Job]
			leases[m.Job] = m
			if known && was.Instant == m.Instant && slices.Equal(was.Nodes, m.Nodes) {
				continue
			}
		default:
		}
		out = append(out, m)
	}
	return out
}

func texts(moves []contentiontest.Move) []string {
	var out []string
	for _, m := range moves {
		text := fmt.Sprint(contentiontest.Clock(m.At), " ", m.Job, " ", m.Kind)
		if m.Nodes != nil {
			text += fmt.Sprint(" ", m.Nodes)
		}
		if m.Kind == contentiontest.Leases {
			text += " from " + contentiontest.Clock(m.Instant)
		}
		out = append(out, text)
	}
	return out
}

// around returns the lines around one.
func around(lines []string, at int) string {
	const most = 6
	return strings.Join(lines[min(max(0, at-most), len(lines)):min(len(lines), at+most)], "\n")
}
