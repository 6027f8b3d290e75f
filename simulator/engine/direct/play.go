package direct

import (
	"context"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// NewEngine returns the engine that plays scenarios on the machine alone. now reads the wall clock, as time.Now does:
// it measures the cost of evaluations, and no event depends on it.
func NewEngine(o Options, now func() time.Time) engine.Engine { return &playing{o, now} }

// playing is the engine of NewEngine.
type playing struct {
	options Options
	now     func() time.Time
}

// Run implements engine.Engine. It checks the context between instants.
func (a *playing) Run(ctx context.Context, s *scenario.Scenario, w engine.Watcher) error {
	of := translate(s)
	if err := check(of); err != nil {
		return err
	}
	p := newPlayer(of, a.options, func(event Event) { w.Happens(shared(event)) })
	p.stopwatch.wall = a.now
	p.stopwatch.decided = func(members int, placed bool, took time.Duration) {
		w.Decides(engine.Decision{Took: took, Members: members, Placed: placed})
	}
	for ctx.Err() == nil && p.step() {
		p.rounds()
		p.report()
	}
	if p.fault != nil {
		return p.fault
	}
	return ctx.Err()
}

// translate converts a scenario to seconds since its beginning.
func translate(s *scenario.Scenario) Scene {
	out := Scene{
		Ledger: s.Ledger, Accelerator: s.Accelerator, Closed: s.Closed, Jobs: make([]Job, 0, len(s.Jobs)),
	}
	for _, r := range s.Running {
		out.Running = append(out.Running, Running{
			Name: r.Name, Holds: r.Holds, Started: -seconds(r.Ran), Expected: expected(r), Ends: seconds(r.Ends),
			Sweep: contention.Sweep(r.Sweep),
		})
	}
	for _, j := range s.Jobs {
		out.Jobs = append(out.Jobs, Job{
			Name:  j.ID,
			Order: contention.Order{Priority: j.Priority, Since: since(j.Submit - j.Waited), Name: j.ID},
			Gang:  j.Gang, Needed: j.Needed, Min: j.Min,
			Arrives: int64(j.Submit / time.Second), Past: j.Submit % time.Second,
			Runs: seconds(j.Duration), Promises: seconds(j.Estimate),
			Kind:         forecast.Key{Namespace: j.Tenant, Stem: forecast.Stem(j.ID), Size: j.Accelerators},
			Accelerators: j.Accelerators, Preemptible: j.Preemptible,
			NeverPreempts: j.NeverPreempts, Grace: seconds(j.Grace), Bound: j.Bound, Replaces: j.Replaces,
			Shrinks: j.Shrinks,
			Sweep:   contention.Sweep(j.Sweep),
		})
		if j.Shrinks { // its trainer reports its checkpoints
			out.Jobs[len(out.Jobs)-1].Saves = seconds(j.Saves)
		}
	}
	if !s.Options.Costs.Off() ||
		slices.ContainsFunc(
			s.Jobs,
			func(j scenario.Job) bool { return j.Shrinks },
		) { // Job.Saves stays 0: no trainer reports its checkpoints, so the machine does not know them
		out.Pace, out.Slowest = s.Pace, s.Slowest
	}
	for _, e := range s.Events {
		event := SceneEvent{
			At: seconds(e.At), Kind: happening(e), Nodes: e.Nodes, Running: e.Running, Job: e.Job,
		}
		if e.Kind == scenario.Resume {
			event.Since = since(e.At)
		}
		out.Events = append(out.Events, event)
	}
	return out
}

// since is an instant as the queue sees it: creation timestamps of objects are whole seconds.
func since(at time.Duration) time.Time { return time.Unix(0, int64(at)).Truncate(time.Second) }

// expected returns the end of a running unit that the scheduler expects: a single pod without a declared end is a
// service.
func expected(r scenario.Running) contention.End {
	switch {
	case r.Expected != scenario.Forever && r.Reported:
		return contention.End{At: seconds(r.Expected), Certainty: contention.Reported}
	case r.Expected != scenario.Forever:
		return contention.End{At: seconds(r.Expected), Certainty: contention.Certain}
	case r.IsGang:
		return contention.End{Certainty: contention.Unknown}
	}
	return contention.End{Certainty: contention.Never}
}

// seconds rounds up; Forever stays Forever.
func seconds(d time.Duration) int64 {
	if d == scenario.Forever {
		return Forever
	}
	if d < 0 {
		return -int64(-d / time.Second)
	}
	return int64((d + time.Second - 1) / time.Second)
}

// happening converts the kind of an event. check refuses an event of another kind.
func happening(e scenario.Event) Kind {
	switch e.Kind {
	case trace.Fail:
		return NodesFailed
	case trace.Drain:
		return NodesDrained
	case trace.Return:
		return NodesReturned
	case scenario.Cordon:
		return NodesCordoned
	case scenario.Suspend, scenario.Withdraw:
		return Suspended
	case scenario.Restore, scenario.Resume:
		return Resumed
	case scenario.Extend:
		return Extended
	}
	return Arrived
}

// shared converts an event to one that all engines share.
func shared(e Event) engine.Event {
	out := engine.Event{
		At: time.Duration(
			e.At,
		)*time.Second + e.Past,
		Kind:    kindOf(e.Kind),
		Job:     e.Job,
		Running: e.Running,
		Nodes:   e.Nodes,
	}
	switch e.Kind {
	case Started, Joined, Shrunk:
		out.Nodes = e.Placement.Nodes
	case Leased:
		out.Nodes, out.From = slices.Compact(slices.Sorted(slices.Values(e.Placement.Nodes))), scenario.Forever
		if e.Reserved != Forever {
			out.From = time.Duration(e.Reserved) * time.Second
		}
	default:
	}
	return out
}

func kindOf(k Kind) engine.Kind {
	if k == Arrived {
		return engine.Submitted
	}
	return engine.Kind(k.String())
}
