package kube_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// rules checks those invariants that are visible in an engine's events. From the machine it takes the instants at which
// leases opened, which no event has.
//
//   - No start overbooks a node, or is on a node that is away.
//   - A job leaves for another one only if it is preemptible and a job of strictly higher priority waits.
//   - A start on the place of an earlier job's closed lease with a firm instant ends by then as far as is known, is of a unit that the owner may
//     evict, is beside the place, or leaves the owner another place from no later instant.
//   - No job starts at an instant at which an earlier one with the same question and no longer run time waits on.
//   - If all ends are certain and hold, no earlier job arrives and no node is lost, the owner of a lease starts at its instant.
type rules struct {
	t *testing.T
	p played
	// free holds the free capacity by node, away the nodes on which nothing starts.
	free []topology.Capacity
	away map[int]bool
	// waits are the jobs that wait, leaves those that are evicted, runs the nodes of those that run; leases are the
	// last that were reported of those that wait.
	waits  map[int]bool
	leaves map[int]bool
	runs   map[int][]int
	leases map[int]engine.Event
	// ended are the units of the beginning that have ended.
	ended map[int]bool
	// queued holds the last time of the resumption of jobs.
	queued map[int]time.Duration
	// opened are the owners of leases that opened, by instant of the script.
	opened map[int64][]string
}

// checkRules checks all events of an engine.
func (p played) checkRules(t *testing.T, player *contentiontest.Player, events []engine.Event) {
	t.Helper()
	r := &rules{
		t: t, p: p, away: make(map[int]bool), waits: make(map[int]bool), leaves: make(map[int]bool),
		runs: make(map[int][]int), queued: make(map[int]time.Duration), ended: make(map[int]bool),
		leases: make(map[int]engine.Event), opened: make(map[int64][]string),
	}
	for _, m := range player.Moves {
		if m.Kind == contentiontest.Opens {
			r.opened[m.At] = append(r.opened[m.At], m.Job)
		}
	}
	for _, free := range p.of.Ledger.Free {
		r.free = append(r.free, slices.Clone(free))
	}
	for i := 0; i < len(events); {
		end := i
		for end < len(events) && events[end].At == events[i].At {
			end++
		}
		r.instant(events[i:end])
		i = end
	}
	p.checkTold(t, events)
}

// instant checks the events of an instant. Leases are reported at its end.
func (r *rules) instant(events []engine.Event) {
	later := make(map[int]engine.Event)
	for _, e := range events {
		if e.Kind == engine.Leased {
			later[e.Job] = e
		}
	}
	maps.DeleteFunc(r.leases, func(owner int, _ engine.Event) bool {
		return slices.Contains(r.opened[r.p.at(events[0].At)], r.p.of.Jobs[owner].ID)
	})
	var started []int
	for _, e := range events {
		switch e.Kind {
		case engine.Submitted:
			r.waits[e.Job] = true
		case engine.Resumed:
			r.waits[e.Job] = true
			if slices.ContainsFunc(r.p.of.Events, func(of scenario.Event) bool {
				return of.Kind == scenario.Resume && of.At == e.At && of.Job == e.Job
			}) {
				r.queued[e.Job] = e.At
			}
		case engine.Suspended:
			delete(r.waits, e.Job)
			delete(r.leases, e.Job)
		case engine.Started, engine.Joined:
			r.starts(e, later)
			started = append(started, e.Job)
		case engine.Evicted:
			r.preempted(e)
			r.leaves[e.Job] = true
		case engine.Ended, engine.Preempted, engine.Disrupted:
			if e.Kind == engine.Preempted && !r.leaves[e.Job] {
				r.preempted(e)
			}
			delete(r.leaves, e.Job)
			r.ends(e)
		case engine.NodesFailed, engine.NodesDrained, engine.NodesCordoned, engine.NodesReturned:
			for _, node := range e.Nodes {
				r.away[node] = e.Kind != engine.NodesReturned
			}
		case engine.Leased:
			r.leases[e.Job] = e
		case engine.Refused, engine.Paused, engine.Shrunk: // this engine pauses no job, and shrinks none
		}
	}
	for _, job := range started {
		r.overtakes(job)
	}
}

// starts checks a start, or that members join.
func (r *rules) starts(e engine.Event, later map[int]engine.Event) {
	job := &r.p.of.Jobs[e.Job]
	fresh := e.Nodes[len(r.runs[e.Job]):]
	r.runs[e.Job] = e.Nodes
	for owner, lease := range r.leases {
		if moved, moves := later[owner]; moves && moved.From > lease.From {
			lease = moved // by the events of this instant: rule 4
		} else if moves {
			continue
		}
		if job.Bound == nil && r.waits[owner] && r.before(owner, e.Job) && lease.From != scenario.Forever {
			r.respects(e, fresh, lease)
		}
	}
	if e.Kind == engine.Started {
		delete(r.waits, e.Job)
		delete(r.leases, e.Job)
	}
	for _, node := range fresh {
		if r.away[node] {
			r.t.Errorf("%s: %s starts on node %d, which is away", e.At, job.ID, node)
		}
		r.take(e, node, 1)
	}
}

// respects checks that a start respects the place of an earlier job.
func (r *rules) respects(e engine.Event, fresh []int, lease engine.Event) {
	job, owner := &r.p.of.Jobs[e.Job], &r.p.of.Jobs[lease.Job]
	beside := !slices.ContainsFunc(fresh, func(node int) bool {
		return slices.Contains(lease.Nodes, node) && !r.spares(job, owner, fresh, node, lease)
	})
	inTime := job.Estimate > 0 && e.At+job.Estimate <= lease.From
	victim := job.Preemptible && job.Priority < owner.Priority
	if !beside && !inTime && !victim {
		r.t.Errorf("%s: %s starts on the place of %s, which has it from %s", e.At, job.ID, owner.ID, lease.From)
	}
}

// spares reports whether a leased node has room for the members that start there beside those of the owner, at the
// lease's instant. Running jobs are assumed to stay.
func (r *rules) spares(job, owner *scenario.Job, fresh []int, node int, lease engine.Event) bool {
	then := slices.Clone(r.free[node])
	for i := range r.p.of.Running {
		if of := &r.p.of.Running[i]; !r.ended[i] && of.Expected <= lease.From {
			for _, held := range of.Holds {
				for at, amount := range held.Demand {
					if held.Node == node {
						then[at] += amount
					}
				}
			}
		}
	}
	starts := int64(0)
	for _, at := range fresh {
		if at == node {
			starts++
		}
	}
	most := int64(len(owner.Gang.Members) - len(lease.Nodes) + 1) // of its members on one node
	for i, takes := range job.Gang.Shapes[0].Demand {
		if takes > 0 && starts*takes > then[i]-most*owner.Gang.Shapes[0].Demand[i] {
			return false
		}
	}
	return true
}

// take takes a member's demand from a node; sign -1 gives it back.
func (r *rules) take(e engine.Event, node int, sign int64) {
	for i, amount := range r.p.of.Jobs[e.Job].Gang.Shapes[0].Demand {
		if r.free[node][i] -= sign * amount; r.free[node][i] < 0 {
			r.t.Errorf("%s: %s overbooks node %d", e.At, r.p.of.Jobs[e.Job].ID, node)
		}
	}
}

// ends gives back the capacity that a job or an initial unit held.
func (r *rules) ends(e engine.Event) {
	if e.Running != engine.None {
		r.ended[e.Running] = true
		for _, held := range r.p.of.Running[e.Running].Holds {
			for i, amount := range held.Demand {
				r.free[held.Node][i] += amount
			}
		}
		return
	}
	for _, node := range r.runs[e.Job] {
		r.take(e, node, -1)
	}
	delete(r.runs, e.Job)
	r.waits[e.Job] = e.Kind != engine.Ended
}

func (r *rules) preempted(e engine.Event) {
	victim := &r.p.of.Jobs[e.Job]
	higher := false
	for job, waits := range r.waits {
		higher = higher || waits && r.p.of.Jobs[job].Priority > victim.Priority
	}
	if !victim.Preemptible || !higher {
		r.t.Errorf("%s: %s is preempted; preemptible %v, a job of higher priority waits: %v",
			e.At, victim.ID, victim.Preemptible, higher)
	}
}

// overtakes checks that no earlier job with the same question waits, if a lease that refuses it would not let the other
// one pass either.
func (r *rules) overtakes(job int) {
	of := &r.p.of.Jobs[job]
	if of.Bound != nil {
		return // pods of a DaemonSet are in no queue
	}
	for other, waits := range r.waits {
		earlier := &r.p.of.Jobs[other]
		same := contention.Question(earlier.Gang) == contention.Question(of.Gang) && earlier.Min == of.Min &&
			earlier.Preemptible == of.Preemptible
		asShort := of.Estimate == 0 || earlier.Estimate > 0 && earlier.Estimate <= of.Estimate
		if waits && same && asShort && r.before(other, job) {
			r.t.Errorf("%s starts, and %s waits, which is earlier and has the same question", of.ID, earlier.ID)
		}
	}
}

// before reports whether a job is before another one in the queue.
func (r *rules) before(a, b int) bool { return r.order(a).Compare(r.order(b)) < 0 }

// order returns the place of a job in the queue; one that was resumed has another one than before.
func (r *rules) order(job int) contention.Order {
	order := r.p.order(job)
	if at, resumed := r.queued[job]; resumed {
		order.Since = r.p.of.Begin.Add(at)
	}
	return r.p.due(job, order)
}

func (p played) order(job int) contention.Order {
	j := &p.of.Jobs[job]
	return p.due(job, contention.Order{Priority: j.Priority, Since: p.of.Begin.Add(j.Submit), Name: j.ID})
}

// due returns the order of a job with when it is due: a part of its run time after it got ready, or of a day if that is
// not known.
func (p played) due(job int, order contention.Order) contention.Order {
	if slack := p.discipline.Slack; slack > 0 {
		const hundred = 100
		runs := cmp.Or(p.of.Jobs[job].Estimate, 24*time.Hour)
		order.Due = order.Since.Add(runs * time.Duration(slack) / hundred)
	}
	return order
}

// checkTold checks, if all ends are certain and hold and no node is lost, that each job starts at the instant that was
// reported last before which no earlier job arrived.
func (p played) checkTold(t *testing.T, events []engine.Event) {
	t.Helper()
	if !p.isCertain() {
		return
	}
	told := make(map[int]engine.Event)
	for _, e := range events {
		switch e.Kind {
		case engine.Submitted:
			for owner := range told {
				if p.order(e.Job).Compare(p.order(owner)) < 0 {
					delete(told, owner)
				}
			}
		case engine.Leased:
			if _, known := told[e.Job]; !known && e.From != scenario.Forever {
				told[e.Job] = e
			}
		case engine.Started:
			if lease, known := told[e.Job]; known && e.At > lease.From {
				t.Errorf("%s starts at %s, and was told %s at %s", p.of.Jobs[e.Job].ID, e.At, lease.From, lease.At)
			}
			delete(told, e.Job)
		default:
		}
	}
}

// isCertain reports whether all jobs end at the instant that is known of them, and no node is lost.
func (p played) isCertain() bool {
	return len(p.Events) == 0 && !slices.ContainsFunc(p.Jobs, func(j contentiontest.Job) bool {
		return j.Certainty != contention.Certain || j.Says != j.Runs || j.Preemptible
	})
}
