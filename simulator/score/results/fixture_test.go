package results_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

// played is a scene of 40 jobs on the default fleet, and an event log of it that has every kind of event.
func played(t *testing.T) (*scenario.Scenario, []engine.Event) {
	t.Helper()
	f, err := fleet.Open("gb200-72")
	if err != nil {
		t.Fatal(err)
	}
	work := trace.Trace{Name: "forty", Source: "this test", Synthetic: true}
	for i := range 40 {
		work.Jobs = append(work.Jobs, trace.Job{
			ID: fmt.Sprintf("job-%02d", i), Tenant: "research",
			Submit: time.Duration(i) * time.Minute, Duration: time.Hour,
			Podsets: []trace.Podset{{Count: 1 + i%3, GPUs: 4}},
		})
	}
	s, err := importer.New(f, work, scenario.Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	none := engine.Event{Job: engine.None, Running: engine.None}
	var eventLog []engine.Event
	tell := func(at time.Duration, kind engine.Kind, job int, nodes ...int) *engine.Event {
		e := none
		e.At, e.Kind, e.Job, e.Nodes = at, kind, job, nodes
		eventLog = append(eventLog, e)
		return &eventLog[len(eventLog)-1]
	}
	for i := range s.Jobs {
		at := s.Jobs[i].Submit
		tell(at, engine.Submitted, i)
		tell(at, engine.Refused, i)
		tell(at, engine.Leased, i, i, i+1).From = at + time.Hour
		tell(at+1, engine.Leased, i, i).From = scenario.Forever
		tell(at+1500*time.Millisecond, engine.Started, i, slices.Repeat([]int{i}, len(s.Jobs[i].Gang.Members))...)
		tell(at+2*time.Second, engine.NodesFailed, engine.None, i)
		tell(at+2*time.Second, engine.Disrupted, i)
		tell(at+3*time.Second, engine.NodesReturned, engine.None, i)
	}
	return s, eventLog
}

func card() measure.Scorecard {
	return measure.Scorecard{Scheduler: "lockstep", Engine: "direct", Commit: "abc", Seed: 7}
}

// write writes an event log into a directory.
func write(dir string, s *scenario.Scenario, eventLog []engine.Event, o results.Options, last measure.Scorecard) error {
	o.Card = card()
	run, err := results.Create(dir, s, o)
	if err != nil {
		return err
	}
	for _, e := range eventLog {
		run.Happens(e)
		run.Decides(engine.Decision{Took: time.Second})
	}
	return run.Finish(last, func(w io.Writer) error {
		_, err := io.WriteString(w, "<!doctype html>")
		return err
	})
}

// read are the events of a result, and the error that ended them.
func read(t *testing.T, r *results.Result) ([]engine.Event, error) {
	t.Helper()
	var events []engine.Event
	for e, err := range r.Events() {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}
