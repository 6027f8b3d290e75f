package rerun

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Record holds the events of a run on real components.
type Record struct {
	Plan Plan
	// Begin is before everything else.
	Begin time.Time
	// Asked is the time at which the creation of each TrainJob was requested, Queued the second of its creation, as the
	// API server has it: both by the number of the gang.
	Asked, Queued []time.Time
	Runs          []Run
	// Opened is the time at which the fleet was opened to gangs that were all whole by then; zero if it was open all
	// the time.
	Opened time.Time
	// Returned is the time at which the room of each gang with a forced end was given back.
	Returned map[string]time.Time
	// Events are those of nodes, in order.
	Events []NodeEvent
}

// Gather is the time for which lockstep-scheduler gathers changes before it evaluates waiting gangs again
// (timing.Timing.Gather).
const Gather = 50 * time.Millisecond

// Delays are the times from a decision until a watcher sees its first member bound: for a gang that finds a place that
// is free already, and for one that waits until others leave.
type Delays struct{ Fresh, Waited time.Duration }

// Scene is the record's workload for an engine: the instants at which gangs are whole, and the time for which each
// holds its room.
//
// Room is held from the decision until the last pod ended. A decision is not visible outside the scheduler: it is the
// first binding that was seen, less the usual delay. Of a gang that lost a node the last run counts, and with it the
// time until its pods were there again, because in the simulator it is there again at once.
func Scene(machines fleet.Fleet, record Record, waited map[string]bool, delays Delays) (*scenario.Scenario, error) {
	t := trace.Trace{Name: string(record.Plan.Kind), Source: "recorded on an embedded cluster"}
	queued := make(map[string]time.Duration)
	for i, g := range record.Plan.Gangs {
		runs := record.of(g.Name)
		if len(runs) == 0 || runs[0].Whole.IsZero() {
			return nil, fmt.Errorf("gang %s was never whole", g.Name)
		}
		j := g.Job()
		j.Submit = record.arrives(runs[0])
		delay := delays.Fresh
		if waited[g.Name] {
			delay = delays.Waited
		}
		if record.made() {
			j.Duration = record.stay(g, runs[len(runs)-1])
		} else {
			j.Duration = max(scale(record.held(g, runs)+delay), time.Second)
		}
		queued[g.Name] = j.Submit - record.scaled(record.Queued[i])
		t.Jobs = append(t.Jobs, j)
	}
	slices.SortFunc(t.Jobs, func(a, b trace.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
	})
	for _, e := range record.Events {
		t.Events = append(t.Events, trace.Event{At: record.scaled(e.At), Kind: e.Kind, Nodes: []string{e.Node}})
	}
	s, err := importer.New(machines, t, scenario.Options{Seed: record.Plan.Seed})
	if err != nil {
		return nil, fmt.Errorf("making the scene of a record: %w", err)
	}
	for i := range s.Jobs {
		s.Jobs[i].Waited = queued[s.Jobs[i].ID]
	}
	slices.SortStableFunc(s.Jobs, func(a, b scenario.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.ID, b.ID))
	})
	return s, nil
}

// made reports whether ends were made one by one, each when nothing else happened.
func (r Record) made() bool { return len(r.Returned) > 0 }

// stay returns the duration of a gang with a forced end: from the instant at which room was given back to which its
// start answers, the last before its first binding. So the instants of ends are input, as the scheduler did not choose
// them.
func (r Record) stay(g Gang, run Run) time.Duration {
	returned, over := r.Returned[g.Name]
	if !over || run.First.IsZero() {
		return scale(forever)
	}
	from := r.comes(run)
	for _, at := range r.Returned {
		if at.After(from) && at.Before(run.First) {
			from = at
		}
	}
	return max(r.scaled(returned)-r.scaled(from), time.Second)
}

// of are the runs of a gang, by attempt.
func (r Record) of(gang string) []Run {
	var out []Run
	for _, run := range r.Runs {
		if run.Gang == gang {
			out = append(out, run)
		}
	}
	return out
}

// forever is longer than any record: a run without an observed end lasts to the end of the record.
const forever = 10 * time.Minute

// held returns the time for which a gang's last run held its room, from its first binding. In the simulator a lost gang
// is whole again at once, so the time that its job took to create its pods again is added.
func (r Record) held(g Gang, runs []Run) time.Duration {
	last := runs[len(runs)-1]
	if last.First.IsZero() {
		return g.RunTime
	}
	again := time.Duration(0)
	if len(runs) > 1 && !last.Whole.IsZero() {
		again = last.Whole.Sub(r.lostAt(runs[len(runs)-2]))
	}
	if last.Free.IsZero() {
		return forever + again
	}
	return last.Free.Sub(last.First) + again
}

// lostAt returns the time at which a node of a run was lost: the last such event before it ended. Without one it is the
// time at which it began to end.
func (r Record) lostAt(run Run) time.Time {
	at := run.Ending
	for _, e := range r.Events {
		if e.Kind == trace.Fail && !e.At.After(run.Free) && e.At.After(run.Whole) &&
			slices.Contains(run.Nodes, e.Node) {
			at = e.At
		}
	}
	return at
}

// quantum is played as a second, since instants of scenes are whole seconds: short enough that what happens one after
// the other in a record does so in its scene, and long enough that no run of it reaches the ten minutes that the queue
// assumes an unknown end to be away (contention.Policy.MinRemaining). Stretched a hundredfold, runs of half a minute
// do, and the scene is another one.
const (
	quantum = time.Second / stretch
	stretch = 10
)

// scale returns a time of a record in a scene.
func scale(d time.Duration) time.Duration { return d.Round(quantum) * stretch }

// unscale is the other way.
func unscale(d time.Duration) time.Duration { return d / stretch }

// comes returns the earliest time at which a run could have its room: when it is whole, and the fleet is open.
func (r Record) comes(run Run) time.Time {
	if !run.Whole.IsZero() && run.Whole.Before(r.Opened) {
		return r.Opened
	}
	return run.Whole
}

// arrives returns the arrival of a gang: of several that were whole within a quantum, each a quantum after the
// one before; but those for which the fleet was opened arrive at one instant.
func (r Record) arrives(run Run) time.Duration {
	if run.Whole.Before(r.Opened) {
		return r.scaled(r.Opened)
	}
	at := r.scaled(run.Whole)
	for _, other := range r.Runs {
		same := other.Attempt == 0 && r.scaled(other.Whole) == r.scaled(run.Whole)
		if same && other.Whole.Before(run.Whole) {
			at += time.Second
		}
	}
	return at
}

func (r Record) scaled(at time.Time) time.Duration { return scale(at.Sub(r.Begin)) }
