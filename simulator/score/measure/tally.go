package measure

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Header holds the facts of a scorecard about the run beside the scenario's.
type Header struct {
	// Scheduler and Engine are names; Commit and ConfigHash identify the code and its configuration.
	Scheduler, Engine, Commit, ConfigHash string
	// TieRule is the scheduler's choice between equally good places, Machine the machine on which the speed is
	// measured.
	TieRule, Machine string
}

// Tally listens to an engine and counts. It relies on the events alone: it adds up all holdings once more, so that a
// scheduler, or an engine, that breaks a rule is detected. It needs about 200 bytes a job, and the time of an event is
// proportional to its nodes, except for sampled placements.
type Tally struct {
	scene  *scenario.Scenario
	header Header
	window window

	now      time.Duration
	domains  *domains
	holdings *holdings
	quality  *quality
	space    *space
	series   *sampler
	jobs     []record
	queue    queue

	use        usage
	violations Violations
	preemption Preemption
	pods       int
	// split is the split of runs that are over, lostTo the nominal work among it that was lost, in accelerator-seconds
	// of the window.
	split            split
	lostTo           struct{ preemption, disruption float64 }
	restarts, failed int
	decisions        struct{ placed, refused latencies }
}

var _ engine.Watcher = (*Tally)(nil)

// New listens to a scenario that is about to be played.
func New(s *scenario.Scenario, header Header) *Tally {
	t := &Tally{
		scene:    s,
		header:   header,
		window:   newWindow(s.Jobs),
		domains:  newDomains(s.Ledger.Tree),
		holdings: newHoldings(s),
		jobs:     make([]record, len(s.Jobs)),
	}
	for i := range t.jobs {
		t.jobs[i].first, t.jobs[i].end = Never, Never
	}
	t.quality = newQuality(s, t.domains, t.window.first)
	t.space = newSpace(t.holdings, t.domains)
	t.series = newSampler(s)
	return t
}

// Decides records the cost of a decision.
func (t *Tally) Decides(d engine.Decision) {
	if d.Placed {
		t.decisions.placed.add(d.Took)
	} else {
		t.decisions.refused.add(d.Took)
	}
}

// Happens counts an event. The events of a run arrive in their order.
func (t *Tally) Happens(e engine.Event) {
	t.elapse(e.At)
	switch e.Kind {
	case engine.NodesFailed, engine.NodesDrained, engine.NodesCordoned:
		for _, node := range e.Nodes {
			t.holdings.shut(node)
		}
		if e.Kind == engine.NodesFailed {
			t.failed += len(e.Nodes)
		}
	case engine.NodesReturned:
		for _, node := range e.Nodes {
			t.holdings.open(node)
		}
	case engine.Submitted, engine.Suspended, engine.Resumed,
		engine.Started, engine.Joined, engine.Paused, engine.Shrunk, engine.Ended, engine.Preempted, engine.Disrupted:
		switch {
		case e.Job != engine.None:
			t.happensTo(e)
		case e.Running != engine.None:
			t.leaves(e)
		}
	case engine.Refused, engine.Leased, engine.Evicted: // nothing moves
	}
}

// elapse advances time in which nothing happens.
func (t *Tally) elapse(to time.Duration) {
	if to <= t.now {
		return
	}
	t.series.pass(t.now, to, t.state)
	t.use.add(t.window.overlap(t.now, to), t.holdings, busy(t.queue.waiting > 0))
	t.now = to
}

// happensTo records an event of a job.
func (t *Tally) happensTo(e engine.Event) {
	j := &t.jobs[e.Job]
	switch e.Kind {
	case engine.Submitted:
		j.submit = e.At
		t.waits(e.Job)
	case engine.Suspended:
		t.suspends(e.Job)
	case engine.Resumed:
		t.waits(e.Job)
	case engine.Started:
		if j.phase == running { // it would hold two places
			t.violations.DoubleBooking++
			t.stops(e.Job, over)
		}
		t.starts(e.Job, e.Nodes)
	case engine.Joined:
		t.resizes(e.Job)
		t.joins(e.Job, e.Nodes)
		t.resumes(e.Job, e.Nodes)
		t.goesOn(e.Job, e.Nodes)
	case engine.Paused:
		t.pauses(e.Job, e.Nodes)
	case engine.Shrunk:
		t.resizes(e.Job)
		t.shrinks(e.Job, e.Nodes)
		t.goesOn(e.Job, e.Nodes)
	case engine.Ended:
		if j.phase == running {
			t.ends(e.Job)
			t.stops(e.Job, over)
			j.end = e.At
		}
	case engine.Preempted, engine.Disrupted:
		if j.phase == running {
			to := &t.lostTo.preemption
			if e.Kind == engine.Disrupted {
				to = &t.lostTo.disruption
			}
			lost := t.breaks(e.Job, to)
			t.stops(e.Job, over)
			t.evicts(e.Kind, lost)
			if e.Kind == engine.Preempted {
				j.preempted++
			} else {
				j.disrupted++
			}
			t.waits(e.Job)
		}
	case engine.Refused,
		engine.Leased,
		engine.Evicted,
		engine.NodesFailed,
		engine.NodesDrained,
		engine.NodesCordoned,
		engine.NodesReturned: // not of a job's course
	}
}

// leaves records the end of an initial unit. Its earlier run time is unknown: it is taken to have begun with the
// scenario.
func (t *Tally) leaves(e engine.Event) {
	r := &t.scene.Running[e.Running]
	for _, held := range r.Holds {
		t.holdings.take(held.Node, held.Demand, -1)
	}
	t.evicts(e.Kind, float64(r.Accelerators)*t.now.Hours())
}

// evicts counts a run that ended early, and the accelerator-hours for which it had run.
func (t *Tally) evicts(kind engine.Kind, lost float64) {
	switch kind {
	case engine.Preempted:
		t.preemption.Gangs++
		t.preemption.GPUHours += lost
	case engine.Disrupted:
		t.preemption.Disrupted++
		t.preemption.DisruptedGPUHours += lost
	default: // it ended by itself
	}
}
