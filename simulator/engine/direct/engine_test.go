package direct_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// listener records events, and stops after so many.
type listener struct {
	scene     *scenario.Scenario
	lines     []string
	decisions int
	placed    int
	after     int
	stop      context.CancelFunc
}

func (l *listener) Happens(e engine.Event) {
	who := ""
	switch {
	case e.Job != engine.None:
		who = l.scene.Jobs[e.Job].ID
	case e.Running != engine.None:
		who = l.scene.Running[e.Running].Name
	}
	text := strings.Join(strings.Fields(fmt.Sprint(e.At.Seconds(), " ", who, " ", string(e.Kind))), " ")
	if len(e.Nodes) > 0 {
		text += fmt.Sprint(" ", e.Nodes)
	}
	switch {
	case e.Kind != engine.Leased:
	case e.From == scenario.Forever:
		text += " by a guess"
	default:
		text += fmt.Sprint(" from ", e.From.Seconds())
	}
	l.lines = append(l.lines, text)
	if l.stop != nil && len(l.lines) == l.after {
		l.stop()
	}
}

func (l *listener) Decides(d engine.Decision) {
	l.decisions++
	if d.Placed {
		l.placed += d.Members
	}
}

// whole is a scene of nodes of eight GPUs, two to a rack.
func whole(tb testing.TB, nodes int, jobs ...scenario.Job) *scenario.Scenario {
	tb.Helper()
	return &scenario.Scenario{
		Ledger: fleet(tb, nodes, 2).Ledger, Begin: time.Unix(0, 0), Closed: make([]bool, nodes), Jobs: jobs,
	}
}

// comes is a job of so many nodes; its times are in seconds.
func comes(id string, members, submit, runs, estimate int) scenario.Job {
	j := job(id, members, 8, 0, 0)
	return scenario.Job{
		ID: id, Gang: j.Gang, Needed: members, Accelerators: j.Accelerators,
		Submit: seconds(submit), Duration: seconds(runs), Estimate: seconds(estimate),
	}
}

// still is a wall clock that stands still.
func still() time.Time { return time.Unix(0, 0) }

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func perform(t *testing.T, s *scenario.Scenario, o direct.Options) *listener {
	t.Helper()
	l := &listener{scene: s}
	e := direct.NewEngine(o, still)
	if err := e.Run(t.Context(), s, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *listener) wants(t *testing.T, text string) {
	t.Helper()
	want := strings.TrimSpace(strings.ReplaceAll(text, "\t", ""))
	if got := strings.Join(l.lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A node fails under a gang of two and under an initial run. The gang waits again, before jobs that arrived later, and
// begins anew; the initial run does not return. At the instant of the return, ended jobs leave first, and arriving jobs
// are last.
func TestNodeFailure_GangRestartsInQueueOrder(t *testing.T) {
	s := whole(t, 4, comes("pair", 2, 0, 100, 0), comes("later", 1, 60, 10, 0), comes("last", 1, 70, 5, 0))
	s.Ledger.Free[0], s.Ledger.Free[1] = topology.Capacity{0}, topology.Capacity{0}
	holds := func(node int) []topology.Held { return []topology.Held{{Node: node, Demand: topology.Capacity{8}}} }
	s.Running = []scenario.Running{
		{Name: "old", Holds: holds(0), Ends: 70 * time.Second, Expected: scenario.Forever},
		{Name: "lost", Holds: holds(1), Ends: scenario.Forever, Expected: scenario.Forever},
	}
	s.Events = []scenario.Event{
		{At: 50 * time.Second, Kind: trace.Fail, Nodes: []int{1, 2}},
		{At: 70 * time.Second, Kind: trace.Return, Nodes: []int{2}},
		{At: 75 * time.Second, Kind: trace.Drain, Nodes: []int{3}},
		{At: 90 * time.Second, Kind: trace.Return, Nodes: []int{1, 3}},
	}
	perform(t, s, direct.Options{}).wants(t, `
		0 pair submitted
		0 pair started [2 3]
		50 nodes-failed [1 2]
		50 lost disrupted
		50 pair disrupted
		50 pair refused
		60 later submitted
		60 later started [3]
		70 old ended
		70 later ended
		70 nodes-returned [2]
		70 last submitted
		70 pair started [2 3]
		70 last started [0]
		75 last ended
		75 nodes-drained [3]
		75 pair disrupted
		75 pair started [0 2]
		90 nodes-returned [1 3]
		175 pair ended`)
}

// firstFit puts members on the first nodes with eight GPUs free, one each. It looks only at nodes before the limit, if
// that is not 0.
type firstFit struct{ limit int }

func (f firstFit) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	var nodes []int
	for node, free := range l.Free {
		if len(nodes) < len(gang.Members) && free[0] >= 8 && (f.limit == 0 || node < f.limit) {
			nodes = append(nodes, node)
		}
	}
	return nodes, len(nodes) == len(gang.Members)
}

// A policy decides the nodes, a discipline the jobs that pass. "first" runs until 100 on node 0; "large" wants four of
// four nodes, "middle" two.
func TestDiscipline_DecidesBackfill(t *testing.T) {
	jobs := []scenario.Job{
		comes("first", 1, 0, 100, 100), comes("large", 4, 1, 10, 0),
		comes("long", 1, 2, 200, 200), comes("short", 1, 3, 20, 20),
	}
	for name, c := range map[string]struct {
		options direct.Options
		want    string
	}{
		"greedy": {direct.Options{Discipline: direct.Greedy, Policy: firstFit{}}, `
			0 first submitted
			0 first started [0]
			1 large submitted
			1 large refused
			2 long submitted
			2 long started [1]
			3 short submitted
			3 short started [2]
			23 short ended
			100 first ended
			202 long ended
			202 large started [0 1 2 3]
			212 large ended`},
		"strict": {direct.Options{Discipline: direct.Strict, Policy: firstFit{}}, `
			0 first submitted
			0 first started [0]
			1 large submitted
			1 large kept [0 1 2 3] from 100
			1 large refused
			2 long submitted
			2 long refused
			3 short submitted
			3 short refused
			100 first ended
			100 large started [0 1 2 3]
			100 long kept [0] by a guess
			110 large ended
			110 long started [0]
			110 short started [1]
			130 short ended
			310 long ended`},
		"backfill": {direct.Options{Policy: firstFit{}}, `
			0 first submitted
			0 first started [0]
			1 large submitted
			1 large kept [0 1 2 3] from 100
			1 large refused
			2 long submitted
			2 long refused
			3 short submitted
			3 short started [1]
			23 short ended
			100 first ended
			100 large started [0 1 2 3]
			100 long kept [0] by a guess
			110 large ended
			110 long started [0]
			310 long ended`},
		"a policy that would never place it keeps nothing": {direct.Options{Policy: firstFit{3}}, `
			0 first submitted
			0 first started [0]
			1 large submitted
			1 large refused
			2 long submitted
			2 long started [1]
			3 short submitted
			3 short started [2]
			23 short ended
			100 first ended
			202 long ended`},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, whole(t, 4, jobs...), c.options).wants(t, c.want)
		})
	}
}

// "large" has its place at 100 on two of four nodes; one of the two is free. A job that runs longer takes that one if
// the policy has another one for "large" then, and a node beside the place if not; where there is none it waits.
func TestPolicy_BackfillBesideReservation(t *testing.T) {
	s := whole(t, 3, comes("first", 2, 0, 100, 100), comes("large", 2, 1, 50, 0), comes("long", 1, 2, 200, 200),
		comes("longer", 1, 3, 200, 200))
	perform(t, s, direct.Options{Policy: firstFit{}}).wants(t, `
		0 first submitted
		0 first started [0 1]
		1 large submitted
		1 large kept [0 1] from 100
		1 large refused
		2 long submitted
		2 long started [2]
		3 longer submitted
		3 longer refused
		100 first ended
		100 large started [0 1]
		100 longer kept [2] from 202
		150 large ended
		150 longer started [0]
		202 long ended
		350 longer ended`)
}

// A policy does not know elastic jobs: it places all members, or none.
func TestPolicy_PlacesElasticGangWhole(t *testing.T) {
	grows := comes("grows", 3, 1, 10, 0)
	grows.Min = 1
	s := whole(t, 3, comes("first", 1, 0, 50, 0), grows)
	perform(t, s, direct.Options{Policy: firstFit{}, Discipline: direct.Greedy}).wants(t, `
		0 first submitted
		0 first started [0]
		1 grows submitted
		1 grows refused
		50 first ended
		50 grows started [0 1 2]
		60 grows ended`)
	perform(t, s, direct.Options{Discipline: direct.Greedy}).wants(t, `
		0 first submitted
		0 first started [2]
		1 grows submitted
		1 grows started [0 1]
		11 grows ended
		50 first ended`)
}

// wrong answers with too few nodes, or with one that is not there.
type wrong []int

func (w wrong) Place(topology.Ledger, topology.Gang) ([]int, bool) { return w, true }

func TestPolicy_WrongPlacementIsAnError(t *testing.T) {
	for _, policy := range []wrong{{0}, {0, 7}, {-1, 0}} {
		s := whole(t, 2, comes("pair", 2, 0, 10, 0))
		e := direct.NewEngine(direct.Options{Policy: policy}, still)
		err := e.Run(t.Context(), s, &listener{scene: s})
		if err == nil || !strings.Contains(err.Error(), "placing pair") {
			t.Errorf("%v: error %v", policy, err)
		}
	}
}

// No job states its run time; a scheduler that knows it all the same lets the short one pass.
func TestForesight_PerfectLetsShortJobPass(t *testing.T) {
	s := whole(t, 2, comes("runs", 1, 0, 50, 0), comes("large", 2, 1, 10, 0), comes("short", 1, 2, 20, 0))
	blind := perform(t, s, direct.Options{})
	if !slices.Contains(blind.lines, "2 short refused") ||
		!slices.Contains(blind.lines, "1 large kept [0 1] by a guess") {
		t.Errorf("without: %q", blind.lines)
	}
	perform(t, s, direct.Options{Foresight: direct.Perfect}).wants(t, `
		0 runs submitted
		0 runs started [0]
		1 large submitted
		1 large kept [0 1] from 50
		1 large refused
		2 short submitted
		2 short started [1]
		22 short ended
		50 runs ended
		50 large started [0 1]
		60 large ended`)
}

// Nothing starts on closed nodes, not even when initial runs there have ended; nor is a place reserved there.
func TestClosedNodes_TakeNothing(t *testing.T) {
	s := whole(t, 2, comes("one", 1, 0, 10, 0), comes("two", 1, 1, 10, 0))
	s.Closed[0], s.Ledger.Free[0] = true, topology.Capacity{0}
	s.Running = []scenario.Running{{
		Name: "old", Ends: 5 * time.Second, Expected: 5 * time.Second,
		Holds: []topology.Held{{Node: 0, Demand: topology.Capacity{8}}},
	}}
	s.Events = []scenario.Event{
		{At: 6 * time.Second, Kind: trace.Fail, Nodes: []int{0}},
		{At: 7 * time.Second, Kind: trace.Return, Nodes: []int{0}},
	}
	perform(t, s, direct.Options{}).wants(t, `
		0 one submitted
		0 one started [1]
		1 two submitted
		1 two kept [1] by a guess
		1 two refused
		5 old ended
		6 nodes-failed [0]
		7 nodes-returned [0]
		10 one ended
		10 two started [1]
		20 two ended`)
}

// A watcher that stops midway has received all events until then, and no others; a second play reports the same.
func TestEngine_RepeatsEventsUntilStopped(t *testing.T) {
	s := whole(t, 16)
	for i := range 200 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("j%03d", i), 1+i%5, i, 20+i*7%31, 60))
	}
	s.Events = []scenario.Event{{At: 90 * time.Second, Kind: trace.Fail, Nodes: []int{3, 4}}}
	whole := perform(t, s, direct.Options{})
	if again := perform(t, s, direct.Options{}); !slices.Equal(whole.lines, again.lines) {
		t.Error("equal scenes give other events")
	}
	if whole.decisions < 200 || whole.placed < 600 {
		t.Errorf("%d decisions, %d members placed: not all were told", whole.decisions, whole.placed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	part := &listener{scene: s, after: 300, stop: cancel}
	err := direct.NewEngine(direct.Options{}, still).Run(ctx, s, part)
	if n := len(part.lines); !errors.Is(err, context.Canceled) || n < 300 || n == len(whole.lines) {
		t.Fatalf("error %v after %d events", err, n)
	}
	if !slices.Equal(part.lines, whole.lines[:len(part.lines)]) {
		t.Error("what was told until then is something else")
	}
}

func TestEngine_RefusesImpossibleEvents(t *testing.T) {
	for name, events := range map[string][]scenario.Event{
		"a node that is not there": {{Kind: trace.Fail, Nodes: []int{9}}},
		"of no kind":               {{Kind: "explode"}},
		"in the wrong order":       {{At: time.Second, Kind: trace.Fail}, {Kind: trace.Return}},
	} {
		t.Run(name, func(t *testing.T) {
			s := whole(t, 2)
			s.Events = events
			e := direct.NewEngine(direct.Options{}, still)
			if err := e.Run(t.Context(), s, &listener{scene: s}); !errors.Is(err, direct.ErrScene) {
				t.Errorf("error %v", err)
			}
		})
	}
}
