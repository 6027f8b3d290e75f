package measure

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Never is the instant of an event that has not happened.
const Never = time.Duration(-1)

// phase is the state of a job.
type phase uint8

const (
	absent phase = iota
	waiting
	running
	over
)

// record is the history of a job.
type record struct {
	phase phase
	// since is the beginning of its phase; submit, first (start) and end are instants or Never; waited is the sum of
	// its waits that are over.
	since, submit, first, end, waited time.Duration
	starts, preempted, disrupted      int32
	// members and nodes are the numbers of its last start, domains the number that it used of each level, q its
	// quality, 0 if that was not evaluated.
	members, nodes int32
	domains        []int32
	q              float64
	// paused is set while members wait that lost their nodes. It trains nothing since then, and holds so many
	// accelerators.
	paused bool
	held   int64
	// progress is the work that it has done, by the same reckoning as the engines'.
	progress cost.Progress
	// holds are the nodes by rank while it runs, nowhere for a member that has none.
	holds []int32
}

// nowhere is the node of a member that did not start.
const nowhere = -1

// queue holds the jobs that wait.
type queue struct {
	waiting int
	// demand is the number of accelerators that waiting jobs request.
	demand int64
	// low is a job before which none waits.
	low int
}

// oldest is the first job that waits: jobs are numbered by their submission.
func (q *queue) oldest(jobs []record) int {
	for q.low < len(jobs) && jobs[q.low].phase != waiting {
		q.low++
	}
	return q.low
}

// waits puts the job into the queue.
func (t *Tally) waits(job int) {
	j := &t.jobs[job]
	j.phase, j.since = waiting, t.now
	t.queue.waiting++
	t.queue.demand += t.scene.Jobs[job].Accelerators
	t.queue.low = min(t.queue.low, job)
}

// suspends takes a waiting job out of the queue.
func (t *Tally) suspends(job int) {
	j := &t.jobs[job]
	if j.phase != waiting {
		return
	}
	j.waited += t.now - j.since
	j.phase, j.since = over, t.now
	t.queue.waiting--
	t.queue.demand -= t.scene.Jobs[job].Accelerators
}

// starts lets the job run.
func (t *Tally) starts(job int, nodes []int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	if j.phase == waiting {
		j.waited += t.now - j.since
		t.queue.waiting--
		t.queue.demand -= of.Accelerators
	}
	j.phase, j.since = running, t.now
	j.starts++
	if j.first == Never {
		j.first = t.now
	}
	t.begins(job, nodes)
	s := newStart(of, nodes, t.scene.Ledger.Len())
	j.holds, j.members = s.holds, int32(len(s.nodes))
	t.pods += len(s.nodes)
	broken := t.domains.broken(s)
	t.quality.judge(job, s, t.holdings.free, broken)
	j.q, j.nodes, j.domains = s.q, int32(s.spread), s.domains

	for i, node := range s.nodes {
		t.holdings.take(node, s.demand(i), 1)
	}
	t.violations.count(broken, t.holdings.booked(s), len(s.nodes) < least(of))
}

// joins lets more members of a running job run. Its start has been judged; only the resources of the new members are.
func (t *Tally) joins(job int, nodes []int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	if j.phase != running {
		t.violations.PartialGangs++
		return
	}
	all := newStart(of, nodes, t.scene.Ledger.Len())
	fresh := *all
	fresh.nodes, fresh.ranks = nil, nil
	for i, rank := range all.ranks {
		if rank >= len(j.holds) || j.holds[rank] == nowhere {
			fresh.nodes, fresh.ranks = append(fresh.nodes, all.nodes[i]), append(fresh.ranks, rank)
			t.holdings.take(all.nodes[i], all.demand(i), 1)
		}
	}
	if j.holds = all.holds; !of.Shrinks {
		j.members = int32(len(all.nodes))
	}
	t.pods += len(fresh.nodes)
	t.violations.count(t.domains.broken(all), t.holdings.booked(&fresh), false)
}

// stops takes the job off its nodes.
func (t *Tally) stops(job int, next phase) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	for rank, node := range j.holds {
		if node != nowhere {
			t.holdings.take(int(node), of.Gang.Shapes[of.Gang.Members[rank].Shape].Demand, -1)
		}
	}
	j.holds, j.phase, j.since = nil, next, t.now
}

// waited returns the time that the job waited in all, until now if it still does.
func (t *Tally) waited(job int) time.Duration {
	j := &t.jobs[job]
	if j.phase == waiting {
		return j.waited + t.now - j.since
	}
	return j.waited
}

// least returns the number of members that have to start together.
func least(j *scenario.Job) int {
	if j.Min > 0 {
		return j.Min
	}
	return j.Needed
}

// work is the GPU-hours that a job asks for; 0 if it never ends by itself, since it would outweigh all others.
func work(j *scenario.Job) float64 {
	if j.Duration == scenario.Forever {
		return 0
	}
	return float64(j.Accelerators) * j.Duration.Hours()
}
