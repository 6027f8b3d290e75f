package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/scenarios"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// judge finds starts that break a rule, while it records the events.
type judge struct {
	t     *testing.T
	scene *scenario.Scenario
	free  []topology.Capacity
	away  []bool
	on    [][]int
	lines []string
}

func (j *judge) Decides(engine.Decision) {}

func (j *judge) Happens(e engine.Event) {
	who := ""
	if e.Job >= 0 {
		who = j.scene.Jobs[e.Job].ID + " "
	}
	j.lines = append(j.lines, fmt.Sprintf("%g %s%s", e.At.Minutes(), who, e.Kind))
	switch e.Kind {
	case engine.Started:
		j.starts(e)
	case engine.Ended, engine.Preempted, engine.Disrupted:
		j.holds(e.Job, 1)
		j.on[e.Job] = nil
	case engine.NodesFailed, engine.NodesDrained, engine.NodesCordoned, engine.NodesReturned:
		for _, n := range e.Nodes {
			j.away[n] = e.Kind != engine.NodesReturned
		}
	case engine.Submitted, engine.Refused, engine.Leased, engine.Joined, engine.Paused, engine.Shrunk, engine.Evicted,
		engine.Suspended, engine.Resumed: // no scenario has an elastic job
	}
}

// holds gives back, or with -1 takes, the demands of a job's ranks.
func (j *judge) holds(job int, sign int64) {
	of := j.scene.Jobs[job].Gang
	for rank, n := range j.on[job] {
		if n < 0 {
			continue
		}
		for i, amount := range of.Shapes[of.Members[rank].Shape].Demand {
			j.free[n][i] += sign * amount
			if j.free[n][i] < 0 {
				j.t.Errorf("%s overbooks node %d", of.Name, n)
			}
		}
	}
}

func (j *judge) starts(e engine.Event) {
	of := j.scene.Jobs[e.Job]
	j.on[e.Job] = slices.Clone(e.Nodes)
	j.holds(e.Job, -1)
	placed := 0
	for _, n := range e.Nodes {
		if n < 0 {
			continue
		}
		placed++
		if j.away[n] {
			j.t.Errorf("%s starts on node %d, which is out of service", of.ID, n)
		}
	}
	if placed < of.Needed {
		j.t.Errorf("%s starts with %d of %d", of.ID, placed, of.Needed)
	}
	if level := of.Gang.Required; level != "" {
		j.together(of.ID, e.Nodes, level)
	}
	if segment := of.Gang.Segment; segment.Size > 0 {
		for ranks := range slices.Chunk(e.Nodes, segment.Size) {
			j.together(of.ID, ranks, segment.Level)
		}
	}
}

func (j *judge) together(who string, nodes []int, level string) {
	tree := j.scene.Ledger.Tree
	at, ok := tree.Level(level)
	if !ok {
		j.t.Fatalf("there is no level %s", level)
	}
	first, _ := tree.Domain(nodes[0], at)
	for _, n := range nodes {
		if d, _ := tree.Domain(n, at); d.String() != first.String() {
			j.t.Errorf("%s has ranks in %s and in %s", who, first, d)
		}
	}
}

// perform plays a scenario.
func perform(t *testing.T, of scenarios.Case) *judge {
	t.Helper()
	s, err := of.Build()
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{t: t, scene: s, away: slices.Clone(s.Closed), on: make([][]int, len(s.Jobs))}
	for _, free := range s.Ledger.Free {
		j.free = append(j.free, slices.Clone(free))
	}
	e := direct.NewEngine(direct.Options{Preempt: true}, time.Now)
	if err := e.Run(t.Context(), s, j); err != nil {
		t.Fatal(err)
	}
	return j
}

// facts are those that each scenario shows: lines that have to be reported one after the other.
func facts() map[string][]string {
	return map[string][]string{
		"serial": {"0 a started", "60 a ended", "60 b started", "120 c started"},
		"burst":  {"0 burst-00 started"},
		"priority": {
			"0 low started", "10 low preempted", "10 urgent started",
			"30 urgent ended", "30 low started", "60 kept ended",
		},
		"grace": {
			"10 ends evicted", "10 leaves evicted", "10 urgent refused", "12 ends ended", "13 leaves preempted",
			"13 urgent started", "33 urgent ended", "33 leaves started", "93 leaves ended",
		},
		"backfill":    {"1 first refused", "2 short started", "32 short ended", "60 holds ended", "60 first started"},
		"reservation": {"1 first refused", "2 long refused", "60 first started", "120 long started"},
		"singles":     {"31 whole refused", "whole started", "single-39 started"},
		"ties":        {"0 a started", "0 b started", "0 c started", "0 d started", "60 e started"},
		"segments":    {"0 one started", "1 whole-racks started", "2 pairs refused", "61 pairs started"},
		"clique":      {"1 together refused", "60 left ended", "60 together started"},
		"elastic":     {"0 holds started", "1 elastic started", "120 holds ended"},
		"failure": {
			"30 pair disrupted", "30 pair started", "31 pair disrupted",
			"40 pair started", "100 pair ended", "next started",
		},
		"drain": {
			"0 nodes-drained", "1 small started", "120 rack refused",
			"360 nodes-returned", "360 rack started",
		},
	}
}

// telling matches lines that state a fact, at any instant if it names none.
func telling(fact string) func(string) bool {
	return func(line string) bool { return line == fact || strings.HasSuffix(line, " "+fact) }
}

// Each scenario is played to the end of all its jobs, breaks no rule, shows the facts of its description, and is the
// same again.
func TestScenarios(t *testing.T) {
	all := scenarios.All()
	want := facts()
	if len(all) != len(want) {
		t.Errorf("%d scenarios, and facts about %d", len(all), len(want))
	}
	for _, of := range all {
		t.Run(of.Name, func(t *testing.T) {
			if strings.Count(of.About, ".") != 1 || !strings.HasSuffix(of.About, ".") {
				t.Errorf("%q is not one sentence", of.About)
			}
			j := perform(t, of)
			rest := j.lines
			for _, fact := range want[of.Name] {
				at := slices.IndexFunc(rest, telling(fact))
				if at < 0 {
					t.Fatalf("%q is not told where it should be:\n%s", fact, strings.Join(j.lines, "\n"))
				}
				rest = rest[at+1:]
			}
			for _, job := range j.scene.Jobs {
				if !slices.ContainsFunc(j.lines, telling(job.ID+" ended")) {
					t.Errorf("%s does not end:\n%s", job.ID, strings.Join(j.lines, "\n"))
				}
			}
			if again := perform(t, of); !slices.Equal(again.lines, j.lines) {
				t.Error("it is another story the second time")
			}
		})
	}
}

// A gang that waits for a whole fleet waits for the running jobs, and for none that arrived later.
func TestScenarios_SinglesDoNotStarveTheGang(t *testing.T) {
	for _, of := range scenarios.All() {
		if of.Name != "singles" {
			continue
		}
		j := perform(t, of)
		at := slices.IndexFunc(j.lines, telling("whole started"))
		var minutes float64
		if _, err := fmt.Sscan(j.lines[at], &minutes); err != nil {
			t.Fatal(err)
		}
		if runs := 31 + (30 * time.Minute).Minutes(); minutes > runs {
			t.Errorf("the gang starts at %g", minutes)
		}
	}
}
