package direct

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/topology"
)

// job holds the state of a job during a run.
type job struct {
	// rank is its place among all jobs when it arrives, order its place in the queue.
	rank     int
	order    contention.Order
	question string
	// since is the time at which it began to wait, left the nominal run time that it still has.
	since, left int64
	// slowest is the pace of its slowest run; nil until it is needed.
	slowest *cost.Pace
	// predicted is the run time in seconds that was predicted when it began to wait, 0 for none.
	predicted int64
	// usual is the usual run time of such jobs when it began to wait, if starts are forecast.
	usual forecast.Usual
	waits bool
	// suspended is set while a job that arrived neither waits nor runs, and has not ended.
	suspended bool
	// surplus is set while members of a running job wait.
	surplus bool
	// run is nil unless the job runs.
	run *run
	// told is the lease as last reported.
	told told
}

// arrive reports a job, and makes it wait.
func (p *player) arrive(i int) {
	asked, j := &p.scene.Jobs[i], &p.jobs[i]
	j.since, j.left, j.question = asked.Arrives, asked.Runs, contention.Question(asked.Gang)
	p.emit(Event{At: p.now, Kind: Arrived, Job: i, Running: none, Name: asked.Name})
	if asked.Bound != nil {
		p.bind(i)
		return
	}
	p.wait(i)
}

// wait puts a job into the queue.
func (p *player) wait(i int) {
	j := &p.jobs[i]
	j.waits = true
	j.predicted = p.predict(i)
	if p.options.Foresees.Tell != nil && p.history != nil {
		j.usual = p.history.Usual(p.scene.Jobs[i].Kind)
	}
	p.backlog.waiting++
	p.backlog.front.add(j.rank)
	p.backlog.came = append(p.backlog.came, j.rank)
	p.add(p.entity(i))
}

// suspend takes a waiting job out of the queue.
func (p *player) suspend(i int) {
	j := &p.jobs[i]
	if !j.waits {
		return
	}
	j.waits, j.suspended = false, true
	p.backlog.waiting--
	p.backlog.queued--
	p.tally.jobs[i].Waited += p.now - j.since
	p.emit(Event{At: p.now, Kind: Suspended, Job: i, Running: none, Name: p.scene.Jobs[i].Name})
	p.act(p.machine.Remove(p.id(i), p.now))
}

// comeBack puts a suspended job back into the queue.
func (p *player) comeBack(event SceneEvent) {
	i, j := event.Job, &p.jobs[event.Job]
	if !j.suspended {
		return
	}
	j.suspended, j.since = false, p.now
	if !event.Since.IsZero() {
		j.order.Since = event.Since
	}
	p.emit(Event{At: p.now, Kind: Resumed, Job: i, Running: none, Name: p.scene.Jobs[i].Name})
	p.wait(i)
}

func (p *player) add(e contention.Entity) {
	p.backlog.queued++
	p.machine.Add(e)
}

// entity returns a job as it waits.
func (p *player) entity(i int) contention.Entity {
	asked, j := &p.scene.Jobs[i], &p.jobs[i]
	e := contention.Entity{
		ID: p.id(i), Order: j.order, Question: j.question, RunTime: p.runTime(i), Preemptible: asked.Preemptible,
		NeverPreempts: asked.NeverPreempts, Grace: asked.Grace, Accelerators: asked.Accelerators,
		Ask: contention.Ask{Gang: asked.Gang, Needed: asked.Needed, End: topology.EndUnknown}, Sweep: p.sweep(i),
	}
	if p.elastic(i) {
		e.Ask.Needed = asked.Min
		e.Elastic, e.Work = asked.Shrinks && j.run == nil, p.work(i)
	}
	return e
}

// sweep returns the sweep of a job. Other schedulers know of none.
func (p *player) sweep(i int) contention.Sweep {
	if p.options.Unlimited || p.options.Policy != nil {
		return contention.Sweep{}
	}
	return p.scene.Jobs[i].Sweep
}

// elastic reports whether members of a job may wait while it runs. Other schedulers place all members.
func (p *player) elastic(i int) bool {
	return p.scene.Jobs[i].elastic() && p.options.Policy == nil && !p.options.Rigid
}

// surplus returns the waiting members of a job that runs.
func (p *player) surplus(i int) contention.Entity {
	e, asked, r := p.entity(i), &p.scene.Jobs[i], p.jobs[i].run
	e.Ask.Gang.Members = slices.Clone(asked.Gang.Members)
	for rank, node := range r.nodes {
		if node != lostNode {
			e.Ask.Gang.Members[rank].Placed, e.Ask.Gang.Members[rank].Node = true, node
		}
	}
	e.Ask.Needed, e.Question = 1, ""
	e.Order.Grows = p.shrinks(i)
	if known := r.unit.End.At; e.RunTime > 0 { // it ends with those that run
		e.RunTime = max(known-p.now, 0)
	}
	e.Accelerators -= r.unit.Accelerators
	if r.lost > 0 {
		return p.replacement(e)
	}
	return e
}

// runTime returns the known bound of the run time in seconds, 0 for none.
func (p *player) runTime(i int) int64 {
	if p.options.Foresight != Perfect {
		return cmp.Or(p.scene.Jobs[i].Promises, p.jobs[i].predicted)
	}
	if left := p.atMost(i); left != Forever {
		return max(left, 1)
	}
	return 0
}

// predict returns the longest run time of a job, as predicted from earlier runs of its kind; 0 if there are none.
func (p *player) predict(i int) int64 {
	if p.history == nil {
		return 0
	}
	return p.history.RunTime(p.scene.Jobs[i].Kind, 0)
}

// learn records a run that ends now. One that ends in the grace of its eviction does not count: the scheduler cannot
// distinguish it from one that saved its work and left. Initial runs, and pods of DaemonSets, have no kind.
func (p *player) learn(r *run) {
	if p.history == nil || r.job == none || r.leaves != Forever {
		return
	}
	if asked := &p.scene.Jobs[r.job]; asked.Bound == nil {
		p.history.Ended(asked.Kind, p.now-r.start)
	}
}

// later returns the instant some seconds from now, Forever if it is never reached.
func (p *player) later(after int64) int64 {
	if after >= Forever-max(p.now, 0) {
		return Forever
	}
	return p.now + after
}
