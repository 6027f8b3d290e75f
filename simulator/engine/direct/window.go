package direct

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// limits are the numbers of Slurm's SchedulerParameters that decide here, in seconds but for tests.
type limits struct {
	// tests is bf_max_job_test: the number of jobs that a cycle evaluates, in the order of the queue.
	tests int
	// interval is bf_interval: the least time between two cycles. resolution is bf_resolution: ends are rounded up to
	// it. window is bf_window: the longest time ahead for which a job may be planned.
	interval, resolution, window int64
}

// slurmDefaults returns Slurm's default numbers: BACKFILL_INTERVAL, BACKFILL_RESOLUTION, BACKFILL_WINDOW and
// DEF_BF_MAX_JOB_TEST of src/plugins/sched/backfill/backfill.c (SchedMD/slurm), which are those of slurm.conf(5).
func slurmDefaults() limits {
	return limits{tests: 500, interval: 30, resolution: 60, window: 24 * 60 * 60}
}

// windowed is the queue of Slurm: its main scheduler, and sched/backfill beside it.
//
// At each event the main scheduler starts jobs in order until one does not fit; all are in one partition, and nothing
// behind that one starts (sched_config.html). Backfill cycles handle the others. A job may start in one only if this
// delays the plan of no job before it: each of the first jobs of the queue is planned at the earliest instant at which
// it has nodes for its whole time limit, and reserves these against all behind it (bf_job_part_count_reserve=0). A job
// that would start beyond the window is skipped and reserves nothing, so that it delays no other.
//
// The time limit of a job is its declared bound. A job without one has none (partitions have no DefaultTime, and
// MaxTime is UNLIMITED by default), so that neither its end nor anything behind it is inside the window.
//
// Cycles plan anew. One is due only after an event and if two jobs wait, since it finds nothing new otherwise, and runs
// at once if the last is as long ago as the interval. Plans extend to the last job that fits now: plans behind it
// decide nothing, and are not visible.
//
// Not modeled: multifactor priorities, QOS and preemption (PreemptType=preempt/none is the default), several
// partitions, bf_max_time and yields: a cycle takes no time.
type windowed struct {
	limits

	line line
	// questions numbers the questions of all that ever waited.
	questions map[string]int
	now       int64
	// main is set if the main scheduler is due, blocked if the first job of the line does not fit.
	main, blocked bool
	// cycle is set if a backfill cycle is due, from the instant next on.
	cycle bool
	next  int64
}

// Add implements queue.
func (q *windowed) Add(e contention.Entity) {
	q.line.remove(e.ID)
	asks, known := q.questions[e.Question]
	if !known {
		asks = len(q.questions)
		q.questions[e.Question] = asks
	}
	if q.line.add(&spot{e, asks}) == 0 {
		q.blocked = false
	}
	q.main = true
}

// Remove implements queue.
func (q *windowed) Remove(id contention.ID, now int64) []contention.Action {
	q.now = now
	if q.line.remove(id) == 0 {
		q.blocked = false
	}
	q.main = true
	return nil
}

// Started implements queue.
func (q *windowed) Started(id contention.ID, _ []int, now int64) []contention.Action {
	q.now = now
	if q.line.remove(id) == 0 {
		q.blocked = false
	}
	return nil
}

// Freed implements queue.
func (q *windowed) Freed([]int) { q.main, q.blocked = true, false }

// Taken implements queue.
func (q *windowed) Taken([]int) {}

// Ended implements queue.
func (q *windowed) Ended(_ *contention.Unit, now int64) {
	q.now = now
	q.Freed(nil)
}

// Pass implements queue.
func (q *windowed) Pass(now int64) []contention.Action {
	q.now = now
	return nil
}

// Next implements queue. The whole queue has its turn at once, under the name of its first job.
func (q *windowed) Next() (contention.ID, bool) {
	if len(q.line) > 0 && (q.main || q.cycle && len(q.line) > 1 && q.now >= q.next) {
		return q.line[0].ID, true
	}
	return "", false
}

// Turn implements queue.
func (q *windowed) Turn(_ contention.ID, snap *contention.Snapshot) []contention.Action {
	q.now = snap.Now
	if q.main {
		out := q.schedule(snap)
		q.main, q.cycle = false, true
		if len(out) > 0 {
			return out // a cycle sees the jobs that have started
		}
	}
	if !q.cycle || q.now < q.next || len(q.line) < 2 {
		return nil // a job alone is the main scheduler's
	}
	q.cycle, q.next = false, q.now+q.interval
	return q.backfill(snap)
}

// Settle implements queue.
func (q *windowed) Settle(snap *contention.Snapshot) []contention.Action {
	if q.cycle && len(q.line) > 1 && q.next > snap.Now {
		return []contention.Action{contention.Rechecks{At: q.next}}
	}
	return nil
}

// Waiting implements queue.
func (q *windowed) Waiting() []contention.ID { return q.line.ids() }

// Reason implements queue. It is OtherLease while a cycle is due: time alone may let a job start then.
func (q *windowed) Reason(id contention.ID) (contention.Wait, bool) {
	for _, e := range q.line {
		if e.ID == id && q.cycle {
			return contention.Wait{Cause: contention.OtherLease, At: q.next}, true
		}
		if e.ID == id {
			return contention.Wait{Cause: contention.NoRoom, At: contention.None}, true
		}
	}
	return contention.Wait{}, false
}

// Leases implements queue. Plans are made anew by each cycle and not shown.
func (q *windowed) Leases() []*contention.Lease { return nil }

// schedule starts jobs in order until one does not fit.
func (q *windowed) schedule(snap *contention.Snapshot) []contention.Action {
	if q.blocked {
		return nil
	}
	var out []contention.Action
	ledger := snap.Ledger
	for i, e := range q.line {
		a := snap.Placer.Place(ledger, e.Ask)
		if a.Refusal != nil {
			q.blocked = len(out) == 0
			break
		}
		out = append(out, contention.Placed{ID: e.ID, Gang: a.Gang, Placement: a.Placement})
		if i+1 < len(q.line) {
			ledger = less(ledger, holdsOf(a))
		}
	}
	return out
}

// less returns the ledger without the held capacity.
func less(l topology.Ledger, holds []topology.Held) topology.Ledger {
	l.Free = slices.Clone(l.Free)
	for _, held := range holds {
		free := slices.Clone(l.Free[held.Node])
		for r, amount := range held.Demand {
			if r < len(free) {
				free[r] -= amount
			}
		}
		l.Free[held.Node] = free
	}
	return l
}

// backfill plans jobs in order, and starts those that are planned now.
func (q *windowed) backfill(snap *contention.Snapshot) []contention.Action {
	among := q.line[:min(len(q.line), q.tests)]
	p := newPlan(snap, q.limits, len(q.questions))
	last := p.lastFitting(snap, among)
	if last < 0 {
		return nil
	}
	p.expect(snap)
	var out []contention.Action
	for i := 0; i <= last; i++ {
		e := among[i]
		at, a, ok := p.earliest(snap, e)
		if !ok {
			continue
		}
		p.keep(holdsOf(a), at, ending(at, e.RunTime))
		if at == p.now {
			out = append(out, contention.Placed{ID: e.ID, Gang: a.Gang, Placement: a.Placement})
			last = i + 1 + p.lastFitting(snap, among[i+1:last+1])
		}
	}
	return out
}

// ending returns the instant at which a job that starts at an instant reaches its time limit; 0 is none.
func ending(at, limit int64) int64 {
	if limit <= 0 || limit > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + limit
}

// holdsOf returns the capacity that a placed gang takes.
func holdsOf(a contention.Answer) []topology.Held {
	holds := make([]topology.Held, 0, len(a.Placement.Nodes))
	for rank, node := range a.Placement.Nodes {
		holds = append(holds, topology.Held{Node: node, Demand: a.Gang.Shapes[a.Gang.Members[rank].Shape].Demand})
	}
	return holds
}
