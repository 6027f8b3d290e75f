package direct

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/topology"
)

// run is a job that runs, or a unit that ran from the beginning.
type run struct {
	// job is -1 for a unit that ran from the beginning; index is then its place in the scene.
	job, index int
	// number counts the runs in the order of their starts.
	number int
	holds  []topology.Held
	// nodes are those of the members that run, by rank. Initial units have none.
	nodes []int
	// start is the instant at which it began or, of an elastic job, resumed with other members; first is that at which
	// it began.
	start, first int64
	// parting are the ranks that leave alone when a grace is over.
	parting []parting
	// ends is the time at which it ends or leaves, Forever for never, and past the rest after that second.
	ends int64
	past time.Duration
	// leaves is the time at which the grace of its eviction is over, Forever if it is not evicted.
	leaves int64
	// lost is the number of waiting members that lost their nodes; while there are any, the run trains nothing.
	lost int
	// pace turns its time into work.
	pace cost.Pace
	// at is its index among the ends.
	at   int
	unit *contention.Unit
}

// ending is the instant at which it ends or leaves.
func (r *run) ending() instant { return instant{r.ends, r.past} }

// start starts the job, or the surplus of it, that the machine placed.
func (p *player) start(a contention.Placed) {
	i := p.byID[a.ID]
	asked, j := &p.scene.Jobs[i], &p.jobs[i]
	if p.shrinks(i) && j.run != nil {
		p.grow(j.run, a)
		return
	}
	kind := Joined
	if j.run == nil {
		kind = Started
		p.begin(i, a.Placement.Nodes)
	}
	r := j.run
	fresh := len(r.holds)
	r.holds = slices.Grow(r.holds, len(a.Placement.Nodes))
	taken := make([]int, 0, len(a.Placement.Nodes))
	for rank, node := range a.Placement.Nodes {
		if m := a.Gang.Members[rank]; !m.Placed {
			r.holds = append(r.holds, topology.Held{Node: node, Demand: a.Gang.Shapes[m.Shape].Demand})
			taken = append(taken, node)
		}
	}
	r.nodes = a.Placement.Nodes
	if p.shrinks(i) {
		r.nodes = append(slices.Clone(r.nodes), slices.Repeat([]int{lostNode}, len(asked.Gang.Members)-len(r.nodes))...)
	}
	if r.lost > 0 {
		p.train(r)
	}
	for _, held := range r.holds[fresh:] {
		p.take(held, -1)
	}
	p.count(r)
	p.backlog.queued--
	j.surplus = false
	p.act(p.machine.Started(a.ID, taken, p.now))
	p.emit(Event{At: p.now, Kind: kind, Job: i, Running: none, Name: asked.Name, Placement: a.Placement})
	if p.elastic(i) && len(a.Placement.Nodes) < len(asked.Gang.Members) {
		j.surplus = true
		p.add(p.surplus(i))
	}
}

// bind begins the run of pods that arrive on their nodes.
func (p *player) bind(i int) {
	asked, j := &p.scene.Jobs[i], &p.jobs[i]
	j.run = &run{
		job:    i,
		index:  none,
		number: p.runs.number,
		nodes:  asked.Bound,
		start:  p.now,
		ends:   p.later(j.left),
		past:   p.past,
		leaves: Forever,
	}
	p.runs.number++
	p.runs.ends.add(j.run)
	for rank, node := range asked.Bound {
		held := topology.Held{Node: node, Demand: asked.Gang.Shapes[asked.Gang.Members[rank].Shape].Demand}
		j.run.holds = append(j.run.holds, held)
		p.take(held, -1)
	}
	p.count(j.run)
	p.tally.start(i, p.now, 0)
	p.machine.Taken(asked.Bound)
	p.emit(Event{
		At: p.now, Kind: Started, Job: i, Running: none, Name: asked.Name,
		Placement: topology.Placement{Gang: asked.Name, Nodes: asked.Bound},
	})
}

// begin begins a run of a job that waits, on nodes by rank.
func (p *player) begin(i int, nodes []int) {
	j := &p.jobs[i]
	if first := p.first(); first != i {
		p.tally.jobs[first].Bypassed++
	}
	j.waits = false
	p.backlog.waiting--
	p.tally.start(i, p.now, p.now-j.since)
	pace := p.pace(i, nodes)
	j.run = &run{
		job:    i,
		index:  none,
		number: p.runs.number,
		pace:   pace,
		start:  p.now,
		first:  p.now,
		ends:   p.later(p.takes(i, pace)), past: p.past,
		leaves: Forever,
	}
	p.runs.number++
	p.runs.ends.add(j.run)
}

// first is the first job that waits. There is one.
func (p *player) first() int {
	for {
		i := p.backlog.order[p.backlog.front.first()]
		if p.jobs[i].waits {
			return i
		}
		p.backlog.front.drop()
	}
}

// count adds the unit of a running job, in its present state, to the running ones.
func (p *player) count(r *run) {
	asked := &p.scene.Jobs[r.job]
	u := &contention.Unit{
		ID: p.id(r.job), Holds: r.holds, Priority: asked.Order.Priority, Started: r.start,
		Preemptible: asked.Preemptible && asked.Bound == nil, SavesEvery: asked.Saves,
		Accelerators: asked.Accelerators, Grace: asked.Grace, Leaving: r.leaves != Forever,
		Sweep: p.sweep(r.job),
	}
	if len(r.nodes) < len(asked.Gang.Members) || r.lost > 0 {
		u.Accelerators = accelerators(r.holds, p.scene.Accelerator)
	}
	if p.shrinks(r.job) {
		u.Accelerators = accelerators(r.holds, p.scene.Accelerator)
		u.Started, u.Resumed = r.first, r.start
	}
	switch {
	case u.Leaving:
		u.End = known(r.leaves)
	case asked.Bound != nil:
		u.End.Certainty = contention.Never
	case r.lost > 0: // its end depends on when the lost members are replaced
	case p.options.Foresight == Perfect:
		u.End = known(r.ends)
	case p.shrinks(r.job) && asked.Promises > 0:
		u.End = contention.End{At: p.later(p.remains(r)), Certainty: contention.Reported}
	case asked.Promises > 0:
		u.End = contention.End{
			At:        r.start + min(asked.Promises, Forever-1-max(r.start, 0)),
			Certainty: contention.Certain,
		}
	case p.jobs[r.job].predicted > 0:
		u.End = contention.End{At: r.start + p.jobs[r.job].predicted, Certainty: contention.Predicted}
	}
	if r.unit != nil {
		p.tally.used -= r.unit.Accelerators
	}
	p.tally.used += u.Accelerators
	r.unit = u
	p.addUnits(r)
}

// finish ends a run.
func (p *player) finish(r *run, kind Kind) {
	for _, held := range r.holds {
		p.take(held, 1)
	}
	p.tally.used -= r.unit.Accelerators
	event := Event{At: p.now, Kind: kind, Job: r.job, Running: r.index}
	if r.job == none {
		event.Name = p.scene.Running[r.index].Name
		p.runs.begun = slices.DeleteFunc(p.runs.begun, func(o *run) bool { return o == r })
	} else {
		j := &p.jobs[r.job]
		p.runs.parting = slices.DeleteFunc(p.runs.parting, func(other *run) bool { return other == r })
		event.Name, j.run = p.scene.Jobs[r.job].Name, nil
		if kind == Ended {
			p.tally.jobs[r.job].Ended = p.now
		}
		p.withdraw(r.job)
	}
	for _, u := range p.removeUnits(r) {
		p.machine.Ended(u, p.now)
	}
	p.emit(event)
}

// withdraw takes the waiting members of a job that runs out of the queue.
func (p *player) withdraw(i int) {
	if j := &p.jobs[i]; j.surplus {
		j.surplus = false
		p.backlog.queued--
		p.act(p.machine.Remove(p.id(i), p.now))
	}
}

// preempt evicts a job. It leaves when its grace is over, and runs until then.
func (p *player) preempt(i int) {
	r, grace := p.jobs[i].run, p.scene.Jobs[i].Grace
	if r == nil || r.leaves != Forever {
		return
	}
	if grace == 0 {
		p.runs.ends.remove(r)
		p.leave(r)
		return
	}
	p.withdraw(i) // no member joins a job that leaves
	if r.leaves = p.later(grace); r.leaves <= r.ends {
		p.runs.ends.remove(r)
		r.ends, r.past = r.leaves, p.past
		p.runs.ends.add(r)
	}
	p.count(r)
	p.emit(Event{At: p.now, Kind: Evicted, Job: i, Running: none, Name: p.scene.Jobs[i].Name})
}

// leave ends a run that is preempted. The job waits again for the run time that it has left since its last checkpoint.
func (p *player) leave(r *run) {
	i, j := r.job, &p.jobs[r.job]
	u := *r.unit
	u.Leaving = false // the work done meanwhile is lost too
	p.tally.preempt(i, u.Lost(p.now))
	p.finish(r, Preempted)
	p.save(r)
	j.since = p.now
	p.wait(i)
}

// take returns held capacity of a node; sign -1 takes it.
func (p *player) take(held topology.Held, sign int64) {
	c := &p.closed[held.Node]
	switch {
	case c.why != 0:
		for len(c.free) < len(held.Demand) {
			c.free = append(c.free, 0)
		}
		for resource, amount := range held.Demand {
			c.free[resource] += sign * amount
		}
	case sign < 0:
		p.book.Take(held.Node, held.Demand)
	default:
		p.book.Give(held.Node, held.Demand)
	}
}
