package importer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// two is a trace of a job of one accelerator and one of two nodes, an hour each.
func two() trace.Trace {
	return trace.Trace{Name: "two", Jobs: []trace.Job{
		{ID: "one", Duration: time.Hour, Podsets: []trace.Podset{{Count: 1, GPUs: 1}}},
		{ID: "two", Duration: time.Hour, Podsets: []trace.Podset{{Count: 2, GPUs: 8}}},
	}}
}

func costly(t *testing.T, of trace.Trace, costs cost.Settings) (*scenario.Scenario, error) {
	t.Helper()
	f, err := fleet.Open("h100-64")
	if err != nil {
		t.Fatal(err)
	}
	return importer.New(f, of, scenario.Options{Seed: 1, Estimates: 1, Costs: costs})
}

// Owners' estimates stay bounds: of a job that cannot be slowed down its run time, else that on the worst nodes, with
// assembly and one reload.
func TestNew_CostsReachEstimates(t *testing.T) {
	s, err := costly(t, two(), cost.Settings{Slowdown: 1000, Startup: 1000, Checkpoint: 1800})
	if err != nil {
		t.Fatal(err)
	}
	one, wide := s.Jobs[0], s.Jobs[1]
	if one.Share != 0 || one.Estimate != time.Hour+61*time.Second {
		t.Errorf("the job of one accelerator has a share of %d and an estimate of %s", one.Share, one.Estimate)
	}
	most := s.Slowest(1)
	if wide.Share != 230 || most.Startup != 304 || most.Slowdown < s.Pace(1, []int{0, 63}, 0).Slowdown ||
		wide.Estimate != time.Duration(most.Takes(3600))*time.Second || wide.Saves != 30*time.Minute {
		t.Errorf("the gang has a share of %d, an estimate of %s, checkpoints each %s; its slowest run is %+v",
			wide.Share, wide.Estimate, wide.Saves, most)
	}
	if s.Options.Costs.Network != cost.TaperedH100 {
		t.Errorf("the network is %q", s.Options.Costs.Network)
	}
}

// Without costs nothing is left of them.
func TestNew_CostsNothing(t *testing.T) {
	s, err := costly(t, two(), cost.Settings{Network: cost.RoCEH100})
	if err != nil {
		t.Fatal(err)
	}
	if s.Costs != nil || s.Options.Costs != (cost.Settings{}) || s.Jobs[1].Share != 0 ||
		s.Jobs[1].Estimate != time.Hour {
		t.Errorf("costs %+v, the gang %+v", s.Options.Costs, s.Jobs[1])
	}
}

// Failures are pairs of events, in order, until the longest run after the last submission is over.
func TestNew_Failures(t *testing.T) {
	of := two()
	of.Jobs[1].Submit = 300 * 24 * time.Hour
	s, err := costly(t, of, cost.Settings{Failures: 1000})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i, e := range s.Events {
		if i > 0 && e.At < s.Events[i-1].At {
			t.Fatal("events are not in order")
		}
		if e.Kind == trace.Fail {
			failed++
			if e.At > 300*24*time.Hour+time.Hour {
				t.Errorf("nodes fail at %s", e.At)
			}
		}
	}
	// 64 nodes · 300 days · 6.5/1000 = 125, and 8 racks · 300/365 · 0.44 = 3.
	if failed < 90 || failed > 170 || 2*failed != len(s.Events) {
		t.Errorf("%d failures, %d events", failed, len(s.Events))
	}
}

func TestNew_RefusesCosts(t *testing.T) {
	with := two()
	with.Events = []trace.Event{{Kind: trace.Fail, Nodes: []string{"pod-1-rack-1-node-1"}}}
	for what, c := range map[string]struct {
		of    trace.Trace
		costs cost.Settings
	}{
		"no network":      {two(), cost.Settings{Network: "token-ring", Slowdown: 1000}},
		"below 0":         {two(), cost.Settings{Startup: -1}},
		"cannot be":       {two(), cost.Settings{Checkpoint: -5}},
		"events of nodes": {with, cost.Settings{Failures: 1000}},
	} {
		if _, err := costly(t, c.of, c.costs); !badinput.Is(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
