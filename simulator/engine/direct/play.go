package direct

import (
	"context"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/scenario"
	"github.com/lockstep-project/lockstep/simulator/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// NewEngine returns the engine that plays scenarios by asking the decision core. now reads the wall clock, as time.Now
// does: it measures what decisions cost, and no event depends on it.
func NewEngine(o Options, now func() time.Time) engine.Engine { return &asking{o, now} }

// asking is the engine that asks the decision core.
type asking struct {
	options Options
	now     func() time.Time
}

// Run implements engine.Engine. The context is looked at between instants.
func (a *asking) Run(ctx context.Context, s *scenario.Scenario, w engine.Watcher) error {
	of := translate(s)
	if err := check(of); err != nil {
		return err
	}
	e := newPlayer(of, a.options, func(event Event) { w.Happens(told(event)) })
	e.wall = a.now
	e.decided = func(members int, placed bool, took time.Duration) {
		w.Decides(engine.Decision{Took: took, Members: members, Placed: placed})
	}
	for e.fault == nil && ctx.Err() == nil && e.step() {
		e.examine()
	}
	if e.fault != nil {
		return e.fault
	}
	return ctx.Err()
}

// translate converts a scenario to seconds since its beginning.
func translate(s *scenario.Scenario) Scene {
	out := Scene{
		Ledger: s.Ledger, Accelerator: s.Accelerator, Closed: s.Closed, Jobs: make([]Job, 0, len(s.Jobs)),
	}
	for _, r := range s.Running {
		out.Running = append(out.Running, topology.Running{Name: r.Name, Holds: r.Holds, End: expected(r)})
		out.RunningEnds = append(out.RunningEnds, seconds(r.Ends))
	}
	for _, j := range s.Jobs {
		out.Jobs = append(out.Jobs, Job{
			Name:  j.ID,
			Order: decision.Order{Priority: j.Priority, Since: s.Begin.Add(j.Submit - j.Waited), Name: j.ID},
			Gang:  j.Gang, Needed: j.Needed,
			Arrives: seconds(j.Submit), Runs: seconds(j.Duration), Promises: seconds(j.Estimate),
			Accelerators: j.Accelerators, Preemptible: j.Preemptible,
		})
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, NodeEvent{At: seconds(e.At), Kind: happening(e), Nodes: e.Nodes})
	}
	return out
}

// expected returns when the scheduler expects a run to end: someday for a gang without a declared end, never for a single pod without
// one, which is a service.
func expected(r scenario.Running) int64 {
	switch {
	case r.Expected != scenario.Forever:
		return seconds(r.Expected)
	case r.IsGang:
		return decision.Someday
	}
	return topology.EndUnknown
}

// seconds rounds up; what is forever stays so.
func seconds(d time.Duration) int64 {
	if d == scenario.Forever {
		return Forever
	}
	return int64((d + time.Second - 1) / time.Second)
}

// happening is what an event of a trace is to nodes; one that is neither of the three is refused as a scene.
func happening(e scenario.Event) Kind {
	switch e.Kind {
	case trace.Fail:
		return NodesFailed
	case trace.Drain:
		return NodesDrained
	case trace.Return:
		return NodesReturned
	}
	return Arrived
}

// told says an event in the words that all engines share.
func told(e Event) engine.Event {
	out := engine.Event{
		At: time.Duration(e.At) * time.Second, Kind: kindOf(e.Kind), Job: e.Job, Running: e.Running, Nodes: e.Nodes,
	}
	if e.Job != nobody {
		out.Running = engine.Nobody
	}
	switch e.Kind {
	case Started:
		out.Nodes = e.Placement.Nodes
	case Kept:
		out.Nodes, out.From = e.Placement.Nodes, scenario.Forever
		if e.Reserved < decision.Someday {
			out.From = time.Duration(e.Reserved) * time.Second
		}
	default:
	}
	return out
}

func kindOf(k Kind) engine.Kind {
	switch k {
	case Arrived:
		return engine.Submitted
	case Refused:
		return engine.Refused
	case Kept:
		return engine.Kept
	case Started:
		return engine.Started
	case Ended:
		return engine.Ended
	case Preempted:
		return engine.Preempted
	case Disrupted:
		return engine.Disrupted
	case NodesFailed:
		return engine.NodesFailed
	case NodesDrained:
		return engine.NodesDrained
	case NodesReturned:
		return engine.NodesReturned
	}
	return engine.Kind(k.String())
}
