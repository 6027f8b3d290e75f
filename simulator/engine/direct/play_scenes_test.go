//go:build !race

// A replay has one goroutine, so that the race detector has nothing to find, and the scene of 14,540 small jobs is the
// longest of them.

package direct_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/scenetest"
	"github.com/lockstep-project/lockstep/topology"
)

// unsaid names the scenes that a trace cannot express, each with the inexpressible part.
func unsaid() map[string]string {
	return map[string]string{
		"09_move.txt":                  "hold: moves are the scheduler's, of gangs that run",
		"10_rank_exits.txt":            "hold: jobs of a trace lose all members or none",
		"42_crash_in_a_place.txt":      "hold: jobs of a trace lose no members",
		"43_outranked.txt":             "hold: jobs of a trace lose no members",
		"44_unearned.txt":              "hold: jobs of a trace lose no members",
		"59_sweep_lost_rank.txt":       "finish: jobs of a trace end by themselves only",
		"11_stuck_start.txt":           "stall: members of a trace's jobs start at once",
		"19_late_member.txt":           "hold: all members of a trace's jobs are there at their submission",
		"63_late_member_outranked.txt": "hold: all members of a trace's jobs are there at their submission",
		"62_fail_over.txt":             "fail-over: a trace is replayed by one scheduler",
	}
}

// wordless returns the part of a scene that a trace cannot express, "" for none.
func wordless(s contentiontest.Scene) string {
	for _, e := range s.Events {
		switch e.Kind {
		case contentiontest.Fail, contentiontest.Return, contentiontest.Cordon,
			contentiontest.Suspend, contentiontest.Restore, contentiontest.Resume, contentiontest.Extend:
		default:
			return string(e.Kind)
		}
	}
	for _, j := range s.Jobs {
		if arrives := j.On == nil; arrives && (j.Certainty == contention.Never || j.Certainty == contention.Predicted) {
			return "a service, or a prediction"
		}
	}
	return ""
}

// TestEngine_PlaysScenes plays the machine's own scenes: the same jobs start and are preempted, in the same order, at
// the same instants, on the same nodes, as with the machine's own driver. Both play until the last instant of the
// script.
func TestEngine_PlaysScenes(t *testing.T) {
	reasons := unsaid()
	datadriven.Walk(t, "../../../scheduler/contention/testdata/scenes", func(t *testing.T, path string) {
		t.Helper()
		script := scenetest.ReadScene(t, path)
		reason, listed := reasons[filepath.Base(path)]
		if what := wordless(script.Scene); listed || what != "" {
			if before, _, _ := strings.Cut(reason, ":"); before != what {
				t.Errorf(
					"the scene has %q, which a trace cannot express, and its row in unsaid is %q: want one like \"%s: why\"",
					what,
					reason,
					what,
				)
			}
			return
		}
		agree(t, script)
	})
}

// agree plays a scene with the engine and with the machine's own driver.
func agree(t *testing.T, of scenetest.Script) {
	t.Helper()
	player, err := contentiontest.NewPlayer(of.Scene, of.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if err = player.Play(of.Until); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range player.Log {
		want = append(want, moves(line)...)
	}
	got := told(t, of)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("move %d: %s\nplayer:\n%s", i, difference(got, want), strings.Join(player.Log, "\n"))
		}
	}
}

// moves returns the starts and the preemptions that a line of the player's log says.
func moves(line string) []string {
	words := strings.Fields(line)
	switch words[2] {
	case "starts":
		line, _, _ = strings.Cut(line, " passing ")
		return []string{line}
	case "preempts":
		line, _, _ = strings.Cut(line, " (") // its gain and its loss
		words = strings.Fields(line)
		var out []string
		victims := strings.Split(strings.Join(words[3:], ""), ",")
		for _, victim := range victims {
			if of, _, part := strings.Cut(
				victim,
				"/",
			); !part ||
				!slices.Contains(victims, of) { // members leave with their job
				out = append(out, words[0]+" "+victim+" is preempted")
			}
		}
		return out
	}
	return nil
}

// told plays a scene with the engine, and returns the expected log of the player. Jobs that run at the beginning and
// that may be preempted, or have members that wait, are jobs that arrived then: they start where the scene has them,
// which the player does not log.
func told(t *testing.T, script scenetest.Script) []string {
	t.Helper()
	of := sceneOf(t, script.Scene)
	begun := make(map[string][]int)
	for _, j := range script.Scene.Jobs {
		if j.On != nil {
			begun[j.Name] = j.On
		}
	}
	options := script.Options()
	options.Until = script.Until
	var out []string
	runs, leaves := make(map[string][]int), make(map[string]bool)
	_, err := direct.Run(of, options, func(e direct.Event) {
		switch e.Kind {
		case direct.Started, direct.Joined:
			fresh := joined(runs[e.Name], e.Placement.Nodes)
			runs[e.Name] = slices.Clone(e.Placement.Nodes)
			if on, ran := begun[e.Name]; ran {
				delete(begun, e.Name)
				if !slices.Equal(slices.Sorted(slices.Values(fresh)), slices.Sorted(slices.Values(on))) {
					t.Errorf("%s runs on %v, the scene has it on %v", e.Name, fresh, on)
				}
				return
			}
			if of.Jobs[e.Job].Bound != nil {
				return // the player does not say it
			}
			out = append(out, fmt.Sprintf("%s %s starts %s", contentiontest.Clock(e.At), e.Name, ranges(fresh)))
		case direct.Evicted, direct.Preempted:
			if !leaves[e.Name] {
				out = append(out, fmt.Sprintf("%s %s is preempted", contentiontest.Clock(e.At), e.Name))
			}
			if leaves[e.Name] = e.Kind == direct.Evicted; !leaves[e.Name] {
				delete(runs, e.Name)
			}
		case direct.Shrunk:
			for rank, node := range runs[e.Name] {
				if node >= 0 && e.Placement.Nodes[rank] < 0 {
					out = append(out, fmt.Sprintf("%s %s/%d is preempted", contentiontest.Clock(e.At), e.Name, rank))
				}
			}
			runs[e.Name] = slices.Clone(e.Placement.Nodes)
		case direct.Ended, direct.Disrupted:
			delete(runs, e.Name)
			delete(leaves, e.Name)
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// joined returns the nodes of the ranks that run now and did not before.
func joined(before, now []int) []int {
	var out []int
	for rank, node := range now {
		if node >= 0 && (rank >= len(before) || before[rank] < 0) {
			out = append(out, node)
		}
	}
	return out
}

// sceneOf converts a scene to an engine's.
func sceneOf(t *testing.T, s contentiontest.Scene) direct.Scene {
	t.Helper()
	var nodes []topology.Node
	out := direct.Scene{Now: direct.Forever}
	for c := range s.Cliques {
		for range s.Nodes {
			nodes = append(nodes, topology.Node{
				Name:   contentiontest.NodeName(len(nodes)),
				Labels: map[string]string{contentiontest.Clique: fmt.Sprintf("c%d", c+1)},
			})
			has := topology.Capacity{int64(s.GPUs), int64(s.CPUs)}
			out.Ledger.Free, out.Ledger.Total = append(
				out.Ledger.Free,
				slices.Clone(has),
			), append(
				out.Ledger.Total,
				has,
			)
		}
	}
	var err error
	out.Ledger.Tree, err = topology.NewTree(
		[]topology.Level{{Name: contentiontest.Clique, Key: contentiontest.Clique}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range s.Jobs {
		if j.On == nil || j.Preemptible || len(j.On) < j.Members {
			out.Jobs = append(out.Jobs, jobOf(j))
			out.Now = min(out.Now, j.Arrives)
			continue
		}
		out.Running = append(out.Running, runningOf(j, out.Ledger))
	}
	for _, e := range s.Events {
		kind := map[contentiontest.EventKind]direct.Kind{
			contentiontest.Fail: direct.NodesFailed, contentiontest.Cordon: direct.NodesCordoned,
			contentiontest.Return: direct.NodesReturned, contentiontest.Suspend: direct.Suspended,
			contentiontest.Restore: direct.Resumed, contentiontest.Resume: direct.Resumed,
			contentiontest.Extend: direct.Extended,
		}[e.Kind]
		event := direct.SceneEvent{At: e.At, Kind: kind, Nodes: e.Nodes}
		if e.Job != "" {
			event.Job = slices.IndexFunc(out.Jobs, func(j direct.Job) bool { return j.Name == e.Job })
			event.Running = slices.IndexFunc(out.Running, func(r direct.Running) bool { return r.Name == e.Job })
		}
		if e.Kind == contentiontest.Resume {
			event.Since = time.Unix(e.At, 0).UTC()
		}
		out.Events = append(out.Events, event)
		out.Now = min(out.Now, e.At)
	}
	slices.SortStableFunc(out.Events, func(a, b direct.SceneEvent) int { return int(a.At - b.At) })
	return out
}

func jobOf(j contentiontest.Job) direct.Job {
	gang := topology.Gang{
		Name: j.Name, Required: j.Require, Members: make([]topology.Member, j.Members),
		Shapes: []topology.Shape{{Demand: topology.Capacity{int64(j.GPUs), int64(j.CPUs)}}},
	}
	return direct.Job{
		Name: j.Name, Gang: gang, Needed: j.Members, Min: j.Min, Arrives: j.Arrives, Runs: j.Runs, Promises: j.Says,
		Order:        contention.Order{Priority: j.Priority, Since: time.Unix(j.Arrives, 0).UTC(), Name: j.Name},
		Accelerators: int64(j.Members * j.GPUs), Preemptible: j.Preemptible, NeverPreempts: j.NeverPreempts,
		Grace: j.Grace, Saves: j.Saves, Bound: j.Pinned, Shrinks: j.Elastic,
		Sweep: contention.Sweep{Name: j.Sweep, Limit: j.Limit},
	}
}

// runningOf is a job that runs already; its capacity is taken from the ledger.
func runningOf(j contentiontest.Job, ledger topology.Ledger) direct.Running {
	r := direct.Running{Name: j.Name, Started: j.Arrives, Ends: direct.Forever}
	if j.Runs != contention.None {
		r.Ends = j.Arrives + j.Runs
	}
	switch {
	case j.Certainty == contention.Never:
		r.Expected.Certainty = contention.Never
	case j.Says > 0:
		r.Expected = contention.End{At: j.Arrives + j.Says, Certainty: j.Certainty}
	}
	for _, node := range j.On {
		held := topology.Held{Node: node, Demand: topology.Capacity{int64(j.GPUs), int64(j.CPUs)}}
		r.Holds = append(r.Holds, held)
		for resource, amount := range held.Demand {
			ledger.Free[node][resource] -= amount
		}
	}
	return r
}

// ranges prints nodes as the player does: n1-n4 n7.
func ranges(nodes []int) string {
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	var words []string
	for i := 0; i < len(nodes); {
		end := i
		for end+1 < len(nodes) && nodes[end+1] == nodes[end]+1 {
			end++
		}
		word := fmt.Sprintf("n%d", nodes[i]+1)
		if end > i {
			word += fmt.Sprintf("-n%d", nodes[end]+1)
		}
		words, i = append(words, word), end+1
	}
	return strings.Join(words, " ")
}

// difference shows the point at which two stories diverge.
func difference(got, want []string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	part := func(lines []string) string { return strings.Join(lines[max(at-5, 0):min(at+5, len(lines))], "\n") }
	return "got …\n" + part(got) + "\nwant …\n" + part(want)
}

var randomScenes = flag.Uint64("scenes", 60, "how many random scenes to draw")

// Random scenes are played alike, too: gangs of all sizes with right and wrong estimates, priorities, elastic ones, and
// nodes that fail and return.
func TestEngine_PlaysRandomScenes(t *testing.T) {
	for seed := range *randomScenes {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			script := scenetest.Script{Scene: randomScene(seed), Until: 40 * 86400, Policy: contention.DefaultPolicy()}
			if seed%4 == 0 {
				script.Policy.Discipline = contention.Backfill()
			}
			agree(t, script)
		})
	}
}

func randomScene(seed uint64) contentiontest.Scene {
	const minute, hour = 60, 3600
	r := rand.New(rand.NewPCG(seed, 1))
	s := contentiontest.Scene{Cliques: 1 + r.IntN(3), Nodes: 2 + r.IntN(5), GPUs: []int{1, 4, 8}[r.IntN(3)], CPUs: 16}
	for i := range 10 + r.IntN(30) {
		j := contentiontest.Job{
			Name:        fmt.Sprintf("j%02d", i),
			Arrives:     int64(r.IntN(4 * hour)),
			Members:     1 + r.IntN(s.Cliques*s.Nodes),
			GPUs:        s.GPUs,
			Priority:    int32(r.IntN(4) * 5),
			Runs:        int64(1+r.IntN(90)) * minute,
			Preemptible: r.IntN(2) == 0,
		}
		if j.Priority == 15 { // a quarter evict whatever that costs
			j.Priority += contention.Urgent
		}
		if r.IntN(2) == 0 {
			j.Members = 1
		}
		if r.IntN(3) == 0 {
			j.GPUs = 1 + r.IntN(s.GPUs)
		}
		if r.IntN(3) == 0 && j.Members <= s.Nodes {
			j.Require = contentiontest.Clique
		}
		if r.IntN(3) > 0 {
			j.Certainty = contention.Certain
			j.Says = max(minute, j.Runs+int64(r.IntN(60)-20)*minute)
		}
		if r.IntN(6) == 0 && j.Members > 1 {
			j.Min = 1 + r.IntN(j.Members)
		}
		s.Jobs = append(s.Jobs, j)
	}
	for range r.IntN(3) {
		at, node := int64(r.IntN(6*hour)), r.IntN(s.Cliques*s.Nodes)
		s.Events = append(s.Events,
			contentiontest.Event{At: at, Kind: contentiontest.Fail, Nodes: []int{node}},
			contentiontest.Event{At: at + int64(1+r.IntN(20*minute)), Kind: contentiontest.Return, Nodes: []int{node}})
	}
	return s
}
