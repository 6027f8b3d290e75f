package contentiontest

import (
	"encoding/json"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// begin makes the first members that wait run on nodes; members without a node keep waiting.
func (p *Player) begin(j *job, nodes []int, since int64) {
	fresh := !j.runs
	for rank := range j.nodes {
		if j.nodes[rank] < 0 && len(nodes) > 0 {
			j.nodes[rank] = nodes[0]
			p.take(nodes[0], j.demand(), 1)
			nodes = nodes[1:]
		}
	}
	if fresh {
		j.runs, j.started, j.ends = true, since, contention.None
		p.alive[j.Name] = j
		if j.left != contention.None {
			j.ends = since + j.left
		}
	}
	j.whole = j.whole || j.alive() >= j.least()
	if j.resumed = 0; j.Elastic && !fresh {
		j.resumed = p.now
	}
	p.unit(j)
}

// unit reports the running units of the job: one, and one for each member that an elastic job can do without.
func (p *Player) unit(j *job) {
	for _, part := range slices.Clone(p.running.Parts(contention.ID(j.Name))) {
		p.running.Remove(part.ID)
	}
	var members []contention.Member
	for rank, node := range j.nodes {
		if node < 0 {
			continue
		}
		m := contention.Member{
			ID: partOf(j, rank), Holds: []topology.Held{{Node: node, Demand: j.demand()}},
			Accelerators: int64(j.GPUs), Leaves: contention.None,
		}
		if at, leaves := j.parting[rank]; leaves {
			m.Leaves = at
		}
		members = append(members, m)
	}
	least := len(members)
	if j.Elastic {
		least = j.least()
	}
	for _, u := range contention.Divide(*j.newUnit(), least, members) {
		p.running.Add(u)
	}
}

// newUnit returns the unit of all members, without holds.
func (j *job) newUnit() *contention.Unit {
	u := &contention.Unit{
		ID: contention.ID(j.Name), Priority: j.Priority, Preemptible: j.Preemptible, Grace: j.Grace,
		Accelerators: int64(j.alive() * j.GPUs), Started: j.started, SavesEvery: j.Saves, Resumed: j.resumed,
		Leaving: j.evicted != contention.None, Sweep: contention.Sweep{Name: j.Sweep, Limit: j.Limit},
	}
	switch {
	case u.Leaving:
		u.End = contention.End{At: j.evicted, Certainty: contention.Certain}
	case j.Certainty == contention.Never, j.Daemon:
		u.End.Certainty = contention.Never
	case j.Says > 0 && !j.unknown:
		u.End = contention.End{At: j.started + j.Says, Certainty: j.Certainty}
	}
	return u
}

// take takes a demand on a node; sign -1 gives it back. The free capacity of a node that is away is recorded apart.
func (p *Player) take(node int, demand topology.Capacity, sign int64) {
	if a, ok := p.away[node]; ok {
		for i, n := range demand {
			a.free[i] -= sign * n
		}
		return
	}
	p.meter.used += sign * demand[0]
	if sign > 0 {
		p.book.Take(node, demand)
	} else {
		p.book.Give(node, demand)
	}
}

// stop takes all members of a job off their nodes, and reports the ended units to the machine.
func (p *Player) stop(j *job) {
	for rank, node := range j.nodes {
		if node >= 0 {
			p.take(node, j.demand(), -1)
		}
		j.nodes[rank] = -1
	}
	delete(p.alive, j.Name)
	j.runs, j.whole, j.ends, j.evicted = false, false, contention.None, contention.None
	j.parting = nil
	ended := []*contention.Unit{p.running.Remove(contention.ID(j.Name))}
	for _, part := range slices.Clone(p.running.Parts(ended[0].ID)) {
		ended = append(ended, p.running.Remove(part.ID))
	}
	for _, u := range ended {
		p.machine.Ended(u, p.now)
	}
}

// finish ends a job.
func (p *Player) finish(j *job) {
	p.logf("%s ends", j.Name)
	p.note(Ends, j.Name, nil)
	if j.waits { // its surplus
		p.unqueue(j)
	}
	p.stop(j)
}

// evict begins the eviction of a job.
func (p *Player) evict(j *job) {
	if j.evicted != contention.None {
		return
	}
	j.evicted = p.now + j.Grace
	if j.Grace == 0 {
		p.leave(j)
		return
	}
	p.note(Evicts, j.Name, nil)
	if j.waits { // its surplus: no member joins a job that leaves
		p.unqueue(j)
	}
	p.unit(j)
}

// leave ends an evicted job, which waits again in its old place.
func (p *Player) leave(j *job) {
	if j.Grace > 0 {
		p.logf("%s leaves", j.Name)
	}
	p.note(Leaves, j.Name, nil)
	if j.waits {
		p.unqueue(j)
	}
	p.stop(j)
	p.queue(j)
}

// unqueue takes a job out of the queue.
func (p *Player) unqueue(j *job) {
	j.waits = false
	j.waited += p.now
	for _, a := range p.machine.Remove(contention.ID(j.Name), p.now) {
		p.act(a)
	}
}

// carryOut makes an event of the scene happen.
func (p *Player) carryOut(e Event) {
	j := p.jobs[e.Job]
	switch e.Kind {
	case Fail, Cordon:
		p.shut(e)
	case Return:
		for _, node := range e.Nodes {
			if a, ok := p.away[node]; ok {
				delete(p.away, node)
				p.book.Put(node, a.free)
			}
		}
		p.logf("%s returns", ranges(e.Nodes))
		p.machine.Freed(e.Nodes)
	case Ask:
		p.queue(j)
	case Suspend:
		if !j.waits {
			return
		}
		p.logf("%s is suspended", j.Name)
		p.unqueue(j)
	case Resume:
		j.since = p.now
		p.queue(j)
	case Restore:
		p.queue(j)
	case Finish:
		p.finish(j)
	case Extend:
		j.unknown = true
		p.unit(j)
		p.machine.Taken(j.nodes)
	case Lose:
		p.lose(j, e.Nodes)
	case Hold:
		p.hold(j, e)
	case FailOver:
		p.failOver()
	case Stall, Progress:
		p.machine.Starting(contention.ID(e.Job), p.now)
	case Bound:
		p.machine.Complete(contention.ID(e.Job))
	case Revoke:
		for _, a := range p.machine.Revoke(contention.ID(e.Job), "revoked", p.now) {
			p.act(a)
		}
	}
}

// shut makes nodes unusable.
func (p *Player) shut(e Event) {
	p.logf("%s %ss", ranges(e.Nodes), e.Kind)
	for _, node := range e.Nodes {
		if _, ok := p.away[node]; ok {
			continue
		}
		free := p.book.Put(node, topology.Capacity{0, 0})
		p.away[node] = absence{since: p.now, free: slices.Clone(free)}
	}
	p.machine.Taken(e.Nodes)
	if e.Kind == Cordon {
		return
	}
	for _, j := range p.sorted(func(j *job) bool {
		return j.runs && !j.Daemon && slices.ContainsFunc(j.nodes, func(n int) bool { return slices.Contains(e.Nodes, n) })
	}) {
		p.leave(j)
	}
}

// lose takes the members of a running gang that are on these nodes.
func (p *Player) lose(j *job, nodes []int) {
	p.logf("%s loses a member on %s", j.Name, ranges(nodes))
	for rank, node := range j.nodes {
		if slices.Contains(nodes, node) {
			p.take(node, j.demand(), -1)
			j.nodes[rank] = -1
		}
	}
	p.unit(j)
	p.machine.Freed(nodes)
	if j.waits {
		p.unqueue(j)
	}
}

// hold leases nodes for a job.
func (p *Player) hold(j *job, e Event) {
	l := contention.Lease{
		Owner: contention.ID(j.Name), Order: j.order(), Reason: e.Reason, Expiry: p.now + p.policy.Grace,
		Accelerators: int64(len(e.Nodes) * j.GPUs), Preemptible: j.Preemptible,
		Sweep: contention.Sweep{Name: j.Sweep, Limit: j.Limit},
	}
	var lost contention.Lost
	for _, node := range e.Nodes {
		l.Holds = append(l.Holds, topology.Held{Node: node, Demand: j.demand()})
		lost = lost.Add(p.now, e.Used)
	}
	actions := p.machine.Keep
	if e.Used == contention.None {
		actions = func(l contention.Lease, _ contention.Lost, now int64) []contention.Action {
			return p.machine.Hold(l, now)
		}
	}
	for _, a := range actions(l, lost, p.now) {
		p.act(a)
	}
}

// failOver replaces the machine.
func (p *Player) failOver() {
	next := contention.New(p.policy)
	for _, id := range p.machine.Waiting() {
		next.Add(p.jobs[string(id)].entity(p.now))
	}
	text, err := json.Marshal(p.machine.State())
	var state contention.State
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		p.fail("the state cannot be written and read: %v", err)
	}
	next.Restore(state, p.now)
	p.machine = next
	p.logf("fail-over, leases: %d", len(next.Leases()))
}
