package direct_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// crossed returns a scene of four nodes in two racks with only the inner two open, so that a gang of two crosses racks.
// There an all-reduce takes 17.5 + 25 ms instead of 17.5 + 12.5: with a share of 300 thousandths, 1125 thousandths of
// the time.
func crossed(t *testing.T, checkpoint int64) *scenario.Scenario {
	t.Helper()
	s := whole(t, 4, comes("gang", 2, 0, 200, 0))
	s.Closed = []bool{true, false, false, true}
	s.Options.Costs = cost.Settings{Slowdown: 1000, Startup: 1000, Checkpoint: checkpoint}
	s.Costs = cost.New(cost.Options{
		Tree: s.Ledger.Tree, Total: s.Ledger.Total, Slowdown: 1000, Startup: 1000, Network: cost.Network{
			Inside: cost.Link{MBps: 100_000}, Leaf: cost.Link{MBps: 10_000}, Spine: cost.Link{MBps: 5_000},
		},
	})
	s.Jobs[0].Share, s.Jobs[0].Saves = 300, time.Duration(checkpoint)*time.Second
	s.Events = []scenario.Event{
		{At: seconds(139), Kind: trace.Fail, Nodes: []int{1}}, {At: seconds(500), Kind: trace.Return, Nodes: []int{1}},
	}
	return s
}

// A run takes 4 s of assembly and 225 s for its 200 s of work. Node 1 fails after 135 s of training. Without
// checkpoints the gang runs again from its beginning. With one each minute, 120 s of training are saved, or 106 s of
// work: the rest takes 4 + 300 + 106 s.
func TestEngine_CostsByHand(t *testing.T) {
	for checkpoint, end := range map[int64]string{0: "729", 60: "910"} {
		s := crossed(t, checkpoint)
		l := &listener{scene: s}
		if err := direct.NewEngine(direct.Options{}, still).Run(t.Context(), s, l); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(l.lines, "\n")
		for _, line := range []string{"0 gang started [1 2]", "139 gang disrupted", "500 gang started [1 2]", end + " gang ended"} {
			if !strings.Contains("\n"+got+"\n", "\n"+line+"\n") {
				t.Errorf("checkpoints each %d s: there is no %q in\n%s", checkpoint, line, got)
			}
		}
	}
}

// Perfect foresight knows the end at the nodes that were chosen: the lease of the waiting job begins when the slow run
// is over.
func TestEngine_PerfectForesightKnowsSlowRuns(t *testing.T) {
	s := crossed(t, 0)
	s.Events = nil
	s.Jobs = append(s.Jobs, comes("waits", 2, 1, 10, 0))
	l := &listener{scene: s}
	if err := direct.NewEngine(direct.Options{Foresight: direct.Perfect}, still).Run(t.Context(), s, l); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(l.lines, "\n"); !strings.Contains(got, "1 waits kept [1 2] from 229\n") ||
		!strings.Contains(got, "229 waits started [1 2]") {
		t.Errorf("got\n%s", got)
	}
}

// The gang is in one rack, and the other job beside it until 200. Node 3 fails after 135 s of training, with 120 s
// saved. With replace the gang stays on node 2, and its lost member is first when node 1 has room, before a job that
// arrived earlier: 4 + 300 s to resume, and 80 s of work in two racks, where they take 90. A policy starts the gang
// again as a whole, when it has room.
func TestEngine_ReplacesLostMembers(t *testing.T) {
	for name, c := range map[string]struct {
		options direct.Options
		want    []string
	}{
		"product": {direct.Options{}, []string{
			"139 gang paused [3]", "200 gang joined [2 1]", "500 waits started [3]", "594 gang ended",
		}},
		"policy": {direct.Options{Policy: firstFit{}, Discipline: direct.Greedy}, []string{"139 gang disrupted"}},
	} {
		s := crossed(t, 60)
		s.Jobs[0].Replaces, s.Closed[3] = true, false
		s.Jobs = append(s.Jobs, comes("other", 1, 0, 199, 0), comes("waits", 1, 100, 50, 0))
		s.Events[0].Nodes, s.Events[1].Nodes = []int{3}, []int{3}
		if name == "policy" {
			s.Events[0].Nodes, s.Events[1].Nodes = []int{1}, []int{1}
		}
		l := &listener{scene: s}
		if err := direct.NewEngine(c.options, still).Run(t.Context(), s, l); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(l.lines, "\n")
		for _, line := range c.want {
			if !strings.Contains("\n"+got+"\n", "\n"+line+"\n") {
				t.Errorf("%s: there is no %q in\n%s", name, line, got)
			}
		}
	}
}
