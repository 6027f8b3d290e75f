package importer_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// A job becomes a gang: equal pods share a shape, ranks continue through all podsets, and all instants are whole
// seconds.
func TestNew_JobBecomesAGang(t *testing.T) {
	of := trace.Job{
		ID:       "a",
		Tenant:   "us",
		Submit:   1500 * time.Millisecond,
		Duration: 1001 * time.Millisecond,
		Estimate: time.Millisecond,
		Podsets: []trace.Podset{
			{Count: 1, CPU: 500, Memory: 7}, {Count: 2, GPUs: 8, CPU: 1000, Memory: 9}, {Count: 1, CPU: 500, Memory: 7},
		},
		MinCount:    3,
		Priority:    -4,
		Preemptible: true,
		Required:    "tier-1",
		Preferred:   "fabric.topograph.run/tier-0",
		Segment:     trace.Segment{Size: 2, Level: "node"},
		EndState:    trace.Failed,
	}
	s := made(t, open(t, "h100-64"), jobs(of), scenario.Options{})
	want := scenario.Job{
		ID: "a", Tenant: "us", Submit: 2 * time.Second, Duration: 2 * time.Second, Estimate: time.Second,
		Needed: 3, Accelerators: 16, Priority: -4, Preemptible: true, EndState: trace.Failed,
		Gang: topology.Gang{
			Name:      "a",
			Required:  "tier-1",
			Preferred: "fabric.topograph.run/tier-0",
			Segment:   topology.Segment{Size: 2, Level: "node"},
			Shapes: []topology.Shape{
				{Demand: topology.Capacity{1, 500, 7, 0}},
				{Demand: topology.Capacity{1, 1000, 9, 8}},
			},
			Members: []topology.Member{
				{Name: "a-0"}, {Name: "a-1", Shape: 1}, {Name: "a-2", Shape: 1}, {Name: "a-3"},
			},
		},
	}
	if diff := cmp.Diff(want, s.Jobs[0]); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// An elastic job needs all of its pods where Min is ignored. Divided pods retain the proportion, rounded up.
func TestNew_ElasticJobs(t *testing.T) {
	for name, c := range map[string]struct {
		pods []trace.Podset
		min  int
		all  int
	}{
		"of one podset":   {[]trace.Podset{{Count: 4, Min: 2, GPUs: 8}}, 2, 4},
		"the last of two": {[]trace.Podset{{Count: 3, GPUs: 8}, {Count: 4, Min: 1, GPUs: 8}}, 4, 7},
		"divided":         {[]trace.Podset{{Count: 3, Min: 2, GPUs: 12}}, 4, 5},
		"not elastic":     {[]trace.Podset{{Count: 4, GPUs: 8}}, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(
				t,
				open(t, "h100-64"),
				jobs(trace.Job{ID: "a", Duration: time.Hour, Podsets: c.pods}),
				scenario.Options{},
			)
			j := s.Jobs[0]
			if j.Min != c.min || j.Needed != c.all || len(j.Gang.Members) != c.all {
				t.Errorf("min %d, needed %d of %d; want %d, %d of %d",
					j.Min, j.Needed, len(j.Gang.Members), c.min, c.all, c.all)
			}
		})
	}
}

func TestNew_OrdersJobs(t *testing.T) {
	later := job("a", 1, 1)
	later.Submit = 10 * time.Second
	almost := job("c", 1, 1) // rounded to the same second as the next, which arrives later
	almost.Submit = 700 * time.Millisecond
	s := made(t, open(t, "h100-64"), jobs(almost, job("z", 1, 1), later, func() trace.Job {
		j := job("b", 1, 1)
		j.Submit = 900 * time.Millisecond
		return j
	}()), scenario.Options{})
	var order []string
	for _, j := range s.Jobs {
		order = append(order, j.ID)
	}
	if !slices.Equal(order, []string{"z", "b", "c", "a"}) {
		t.Errorf("the order is %s, want [z b c a]", order)
	}
}

// A pod for which no node is large enough becomes pods that request whole nodes, and numbers of pods grow with it.
func TestNew_DividesLargePods(t *testing.T) {
	large := trace.Job{
		ID: "large", Duration: time.Hour, MinCount: 2, Segment: trace.Segment{Size: 1, Level: "rack"},
		Podsets: []trace.Podset{{Count: 4, GPUs: 8, CPU: 64_000, Memory: 1 << 40}},
	}
	s := made(t, open(t, "gb200-72"), jobs(large, job("fits", 2, 4)), scenario.Options{})
	got := s.Jobs[1]
	if len(got.Gang.Members) != 8 || got.Needed != 4 || got.Gang.Segment.Size != 2 || got.Accelerators != 32 ||
		!cmp.Equal(got.Gang.Shapes[0].Demand, topology.Capacity{1, 32_000, 1 << 39, 4}) {
		t.Errorf("%+v", got)
	}
	if len(s.Jobs[0].Gang.Members) != 2 {
		t.Errorf("%+v", s.Jobs[0])
	}
	if len(s.Notes) != 1 ||
		s.Notes[0] != "pods of 1 jobs asked for more than the 4 accelerators that a node has, and were divided" {
		t.Errorf("notes %q", s.Notes)
	}
}

// Estimates are drawn from the seed, by integers and roundings that all machines share; a job that has one retains it,
// and that changes no other's.
func TestNew_EstimatesFollowTheSeed(t *testing.T) {
	tr := trace.Knavigator()
	for i := range tr.Jobs {
		tr.Jobs[i].Duration = time.Duration(i+1) * 1001 * time.Second
	}
	drawn := func(seed uint64) (estimates []time.Duration, digest uint64) {
		sum := fnv.New64a()
		for _, j := range made(t, open(t, "knavigator-32"), tr, scenario.Options{Seed: seed, Estimates: 5}).Jobs {
			estimates = append(estimates, j.Estimate)
			_, _ = fmt.Fprintln(sum, j.ID, j.Estimate) // a hash takes everything
		}
		return estimates, sum.Sum64()
	}
	first, digest := drawn(1)
	for i, estimate := range first {
		if d := tr.Jobs[i].Duration; estimate < d || estimate > 5*d+time.Second || estimate%time.Second != 0 {
			t.Errorf("%s runs %s, estimated %s", tr.Jobs[i].ID, d, estimate)
		}
	}
	if other, _ := drawn(2); cmp.Equal(first, other) {
		t.Error("another seed draws the same")
	}
	const want = 0xab873ff08d472cd8
	if digest != want {
		t.Errorf("the estimates of seed 1 are %#x, want %#x as on every machine", digest, uint64(want))
	}
	tr.Jobs[0].Estimate = 1
	if after, _ := drawn(1); after[0] != time.Second || !cmp.Equal(after[1:], first[1:]) {
		t.Errorf("one owner's estimate changes others: %v, %v", after[:3], first[:3])
	}
}

// With twice the load all jobs arrive in half the time; nodes in a scene have their numbers.
func TestNew_LoadAndEvents(t *testing.T) {
	tr := jobs(job("a", 1, 1))
	tr.Jobs[0].Submit = time.Hour
	tr.Events = []trace.Event{
		{At: 3 * time.Second, Kind: trace.Fail, Nodes: []string{"rack-2-node-1", "rack-1-node-8"}},
		{At: 2 * time.Hour, Kind: trace.Return, Nodes: []string{"rack-1-node-8"}},
	}
	s := made(t, open(t, "knavigator-32"), tr, scenario.Options{Load: 2})
	want := []scenario.Event{
		{
			At:    2 * time.Second,
			Kind:  trace.Fail,
			Nodes: []int{7, 8},
		},
		{At: time.Hour, Kind: trace.Return, Nodes: []int{7}},
	}
	if s.Jobs[0].Submit != 30*time.Minute || s.Jobs[0].Duration != time.Hour || !cmp.Equal(s.Events, want) {
		t.Errorf("%+v; events %+v", s.Jobs[0], s.Events)
	}
	if s := made(
		t,
		open(t, "knavigator-32"),
		tr,
		scenario.Options{},
	); s.Options.Load != 1 ||
		s.Jobs[0].Submit != time.Hour {
		t.Errorf("no load is %g, and a comes at %s", s.Options.Load, s.Jobs[0].Submit)
	}
}

func TestNew_RefusesImpossibleScenes(t *testing.T) {
	f := open(t, "knavigator-32")
	with := func(change func(*trace.Trace)) trace.Trace {
		tr := jobs(job("a", 2, 1))
		change(&tr)
		return tr
	}
	plain := jobs(job("a", 1, 1))
	for _, tc := range []struct {
		trace   trace.Trace
		options scenario.Options
		want    string
	}{
		{
			with(func(tr *trace.Trace) { tr.Jobs[0].Required = "rack" }),
			scenario.Options{},
			`job a: the fleet knavigator-32 has no level "rack"; name one of "node", "tier-0", "tier-1", or another fleet`,
		},
		{with(func(tr *trace.Trace) { tr.Jobs[0].Preferred = "x" }), scenario.Options{}, `has no level "x"`},
		{
			with(func(tr *trace.Trace) { tr.Jobs[0].Segment = trace.Segment{Size: 1, Level: "y"} }),
			scenario.Options{},
			`has no level "y"`,
		},
		{
			with(func(tr *trace.Trace) {
				tr.Events = []trace.Event{{At: 5 * time.Second, Kind: trace.Drain, Nodes: []string{"n-1"}}}
			}),
			scenario.Options{},
			"event drain at 5s: the fleet knavigator-32 has no node n-1; name a node that",
		},
		{plain, scenario.Options{Load: -1}, "a load of -1 cannot be had"},
		{plain, scenario.Options{Load: 1001}, "a load of 1001 cannot be had"},
		{plain, scenario.Options{Load: math.NaN()}, "a load of NaN cannot be had"},
		{plain, scenario.Options{Estimates: 0.5}, "estimates of 0.5 times the duration cannot be had; write a number from 1 to 1000"},
		{plain, scenario.Options{Estimates: math.NaN()}, "estimates of NaN times"},
	} {
		_, err := importer.New(f, tc.trace, tc.options)
		if !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

// A scene shares no values that change with the inputs that it was made of.
func TestNew_SharesNothingWithItsInputs(t *testing.T) {
	f := open(t, "c6")
	first := made(t, f, jobs(job("a", 1, 1)), scenario.Options{})
	second := made(t, f, jobs(job("a", 1, 1)), scenario.Options{})
	a, b := objects(t, first).Nodes, objects(t, second).Nodes
	if !cmp.Equal(a, b) || !cmp.Equal(first.Ledger.Free, second.Ledger.Free) ||
		a[0] == b[0] {
		t.Error("the second scene of a fleet is another one")
	}
	first.Ledger.Free[0][0] = -1
	if second.Ledger.Free[0][0] == -1 || first.Ledger.Total[0][0] == -1 {
		t.Error("what is free is shared")
	}
}
