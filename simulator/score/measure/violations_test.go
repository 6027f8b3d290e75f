package measure_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/topology"
)

// nvlink are four nodes in two NVLink domains.
func nvlink(tb testing.TB) *scenario.Scenario {
	tb.Helper()
	return cluster(tb, 4, 2, topology.Level{Name: "nvlink", Key: "test/clique", Weight: 700, Accelerator: true})
}

func TestViolations_CountBrokenRules(t *testing.T) {
	for _, tc := range []struct {
		name  string
		scene func(testing.TB) *scenario.Scenario
		// gang changes a gang of two members with a node each; nodes are those on which it starts.
		gang  func(*scenario.Job)
		nodes []int
		want  measure.Violations
	}{
		{
			name: "nothing is broken", scene: six, nodes: []int{2, 3},
			gang: func(j *scenario.Job) { j.Gang.Required = "rack" },
		},
		{
			name: "two racks instead of one", scene: six, nodes: []int{1, 2},
			gang: func(j *scenario.Job) { j.Gang.Required = "test/rack" }, want: measure.Violations{RequiredLevel: 1},
		},
		{
			name: "two nodes instead of one", scene: six, nodes: []int{0, 1},
			gang: func(j *scenario.Job) { j.Gang.Required = topology.LevelNode }, want: measure.Violations{RequiredLevel: 1},
		},
		{
			name: "two NVLink domains instead of one", scene: nvlink, nodes: []int{1, 2},
			gang: func(j *scenario.Job) { j.Gang.Required = "nvlink" }, want: measure.Violations{RequiredLevel: 1, NVLink: 1},
		},
		{
			name: "a preferred level may be broken", scene: nvlink, nodes: []int{1, 2},
			gang: func(j *scenario.Job) { j.Gang.Preferred = "nvlink" },
		},
		{
			name: "a segment in two NVLink domains", scene: nvlink, nodes: []int{0, 2, 1, 3},
			gang: func(j *scenario.Job) {
				grow(j, 4)
				j.Gang.Segment = topology.Segment{Size: 2, Level: "nvlink"}
			},
			want: measure.Violations{RequiredLevel: 1, NVLink: 1},
		},
		{
			name: "segments in a domain each", scene: nvlink, nodes: []int{2, 3, 0, 1},
			gang: func(j *scenario.Job) {
				grow(j, 4)
				j.Gang.Segment = topology.Segment{Size: 2, Level: "nvlink"}
			},
		},
		{
			name: "half a gang", scene: six, nodes: []int{1, engine.None}, gang: func(*scenario.Job) {},
			want: measure.Violations{PartialGangs: 1},
		},
		{
			name: "as many as it needs", scene: six, nodes: []int{1}, gang: func(j *scenario.Job) { j.Needed = 1 },
		},
		{
			name: "both on one node", scene: six, nodes: []int{1, 1}, gang: func(*scenario.Job) {},
			want: measure.Violations{DoubleBooking: 1},
		},
		{
			name: "both on a node of devices", scene: six, nodes: []int{3, 3}, gang: func(*scenario.Job) {},
			want: measure.Violations{DRA: 1},
		},
		{
			name: "more CPU than there is", scene: six, nodes: []int{0, 1},
			gang: func(j *scenario.Job) { j.Gang.Shapes[0].Demand = topology.Capacity{101, 4} },
			want: measure.Violations{DoubleBooking: 1},
		},
		{
			name: "a node that is closed", scene: six, nodes: []int{4, 5}, gang: func(*scenario.Job) {},
			want: measure.Violations{DoubleBooking: 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.scene(t)
			s.Devices[3] = true
			if len(s.Closed) > 5 {
				s.Closed[5] = true
			}
			tc.gang(add(s, 0, 10, 2, 4))
			tally := listen(s)
			tally.job(0, engine.Submitted, 0)
			tally.job(0, engine.Started, 0, tc.nodes...)
			tally.job(10, engine.Ended, 0)
			card := tally.card()
			if card.Violations != tc.want {
				t.Errorf("seen was %+v, broken was %+v", card.Violations, tc.want)
			}
			if q := card.Quality.MeanQ; q <= 0 || q > 1 {
				t.Errorf("the quality of what broke a rule is %v", q)
			}
		})
	}
}

// grow makes the job a gang of so many members.
func grow(j *scenario.Job, members int) {
	j.Gang.Members = make([]topology.Member, members)
	j.Needed, j.Accelerators = members, 4*int64(members)
}

func TestViolations_UnlabeledNodesHaveNoDomain(t *testing.T) {
	s := of(t, []topology.Level{{Name: "rack", Key: "test/rack"}}, []topology.Node{
		{Name: "a", Labels: map[string]string{"test/rack": "r"}}, {Name: "b"}, {Name: "c"},
	})
	add(s, 0, 10, 1, 4).Gang.Required = "rack"
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 1)
	equal(t, tally.card(), map[string]float64{"violations.required_level": 1})
}

func TestViolations_DoubleUseCountsOnce(t *testing.T) {
	s := racks(t, 2)
	for range 3 {
		add(s, 0, 10, 1, 4)
	}
	tally := listen(s)
	for job := range 2 {
		tally.job(0, engine.Submitted, job)
		tally.job(0, engine.Started, job, 0)
	}
	tally.job(5, engine.Ended, 0)
	tally.job(5, engine.Ended, 1)
	tally.job(6, engine.Submitted, 2)
	tally.job(6, engine.Started, 2, 0)
	tally.job(7, engine.Started, 2, 1) // it runs already
	tally.job(9, engine.Ended, 2)
	equal(t, tally.card(), map[string]float64{
		"violations.double_booking": 2, "utilisation.mean": (8*5 + 4*3) / (8.0 * 9), "gangs.finished": 3,
	})
}

// six are six nodes in three racks.
func six(tb testing.TB) *scenario.Scenario {
	tb.Helper()
	return racks(tb, 6)
}
