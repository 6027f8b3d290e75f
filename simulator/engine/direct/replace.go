package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// replaced reports whether the members of a run that were on these nodes are replaced while the others stay in place.
// Other schedulers start such a gang again as a whole, and so does the product if no member is left, or if it is
// elastic.
func (p *player) replaced(r *run, nodes []int) bool {
	if r.job == none || r.leaves != Forever || p.options.Policy != nil {
		return false
	}
	asked := &p.scene.Jobs[r.job]
	return asked.Replaces && asked.Min == 0 && len(r.nodes) == len(asked.Gang.Members) &&
		slices.ContainsFunc(r.nodes, func(node int) bool { return node >= 0 && !slices.Contains(nodes, node) })
}

// pause takes the members of a run that are on these nodes away. The others stay in place and train nothing; the lost
// ones wait before all others of the queue (contention.Order.Replacement).
func (p *player) pause(r *run, nodes []int) {
	j := &p.jobs[r.job]
	if r.lost == 0 {
		p.save(r)
		p.runs.ends.remove(r)
		r.ends = Forever
	}
	var lost []int
	r.nodes = slices.Clone(r.nodes)
	for rank, node := range r.nodes {
		if node >= 0 && slices.Contains(nodes, node) {
			lost = append(lost, node)
			r.nodes[rank] = lostNode
			r.lost++
		}
	}
	r.holds = slices.DeleteFunc(slices.Clone(r.holds), func(held topology.Held) bool {
		gone := slices.Contains(lost, held.Node)
		if gone {
			p.take(held, 1)
		}
		return gone
	})
	p.count(r)
	slices.Sort(lost)
	p.emit(Event{
		At:      p.now,
		Kind:    Paused,
		Job:     r.job,
		Running: none,
		Name:    p.scene.Jobs[r.job].Name,
		Nodes:   slices.Compact(lost),
	})
	p.machine.Taken(p.heldNodes(r)) // its end is not known any more
	if !j.surplus {
		j.surplus = true
		p.backlog.queued++
	}
	p.machine.Add(p.surplus(r.job))
}

// lostNode is the node of a member that was lost.
const lostNode = -1

// heldNodes are the nodes that a run holds.
func (p *player) heldNodes(r *run) []int {
	var nodes []int
	for _, held := range r.holds {
		nodes = append(nodes, held.Node)
	}
	return nodes
}

// train lets a run that is whole again resume from its last checkpoint.
func (p *player) train(r *run) {
	r.lost, r.start = 0, p.now
	r.pace = p.pace(r.job, r.nodes)
	r.ends, r.past = p.later(p.takes(r.job, r.pace)), p.past
	p.runs.ends.add(r)
}

// replacement makes the waiting members of a gang those that replace lost ones: all of them are needed, and start
// first.
func (p *player) replacement(e contention.Entity) contention.Entity {
	i := p.byID[e.ID]
	e.Order.Replacement, e.Ask.Needed, e.RunTime = true, p.jobs[i].run.lost, p.runTime(i)
	return e
}
