package direct

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// closure holds the reasons for which nothing starts on a node, and the room that would be free there otherwise: in the
// ledger it has nothing free.
type closure struct {
	why  reasons
	free topology.Capacity
	// since is the second at which the node failed or was drained, if it is gone.
	since int64
}

// reasons are those for which nothing starts on a node: several may hold at once.
type reasons uint8

const (
	// cordoned nodes are closed from the beginning on, and no event changes that.
	cordoned reasons = 1 << iota
	// gone nodes failed, or were drained, and have not returned.
	gone
)

// close lets nothing start on a node.
func (p *player) close(node int, why reasons) {
	c := &p.closed[node]
	if c.why == 0 {
		c.free = p.book.Put(node, make(topology.Capacity, len(p.scene.Ledger.Free[node])))
	}
	if why == gone && c.why&gone == 0 {
		c.since = p.now
	}
	c.why |= why
}

// open takes a reason away. If none is left, the node is open.
func (p *player) open(node int, why reasons) {
	c := &p.closed[node]
	if c.why == 0 {
		return
	}
	if c.why &^= why; c.why == 0 {
		p.book.Put(node, c.free)
		c.free = nil
	}
}

// away returns the second since which a node that is expected back is gone.
func (p *player) away(node int) (since int64, away bool) {
	c := &p.closed[node]
	return c.since, c.why == gone
}

// carryOut carries out an event.
func (p *player) carryOut(event SceneEvent) {
	switch event.Kind {
	case Extended:
		p.extend(event.Running)
	case Suspended:
		p.suspend(event.Job)
	case Resumed:
		p.comeBack(event)
	default:
		p.change(event)
	}
}

// change carries out an event of nodes. Runs on nodes that fail or are drained end; a job resumes from its last
// checkpoint, and may have its lost members replaced.
func (p *player) change(event SceneEvent) {
	p.emit(Event{At: p.now, Kind: event.Kind, Job: none, Running: none, Nodes: event.Nodes})
	if event.Kind == NodesReturned {
		for _, node := range event.Nodes {
			p.open(node, gone)
		}
		p.machine.Freed(event.Nodes)
		return
	}
	for _, node := range event.Nodes {
		p.close(node, gone)
	}
	p.machine.Taken(event.Nodes)
	if event.Kind == NodesCordoned {
		return
	}
	for _, r := range p.on(event.Nodes) {
		switch {
		case p.replaced(r, event.Nodes):
			p.pause(r, event.Nodes)
		case p.survives(r, event.Nodes):
			p.shrink(r, func(rank int) bool { return slices.Contains(event.Nodes, r.nodes[rank]) })
		default:
			p.disrupt(r)
		}
	}
}

// extend makes the end of an initial run unknown, if it still runs.
func (p *player) extend(running int) {
	for _, r := range p.runs.begun {
		if r.index != running {
			continue
		}
		u := *r.unit
		u.End = contention.End{}
		r.unit = &u
		p.units.Add(&u)
		var nodes []int
		for _, held := range u.Holds {
			nodes = append(nodes, held.Node)
		}
		p.machine.Taken(nodes)
	}
}

// on returns the runs on the nodes, in the order of their starts.
func (p *player) on(nodes []int) []*run {
	var out []*run
	for _, r := range p.runs.begun {
		if slices.ContainsFunc(r.holds, func(h topology.Held) bool { return slices.Contains(nodes, h.Node) }) {
			out = append(out, r)
		}
	}
	for _, node := range nodes {
		for _, u := range p.units.On(node) {
			if i, ok := p.byID[cmp.Or(u.Of, u.ID)]; ok && p.scene.Jobs[i].Bound == nil {
				out = append(out, p.jobs[i].run)
			}
		}
	}
	slices.SortFunc(out, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	return slices.Compact(out)
}

// disrupt ends a run that lost a node. A job waits again; an initial run does not return.
func (p *player) disrupt(r *run) {
	p.runs.ends.remove(r)
	p.finish(r, Disrupted)
	if r.job == none {
		return
	}
	p.save(r)
	p.jobs[r.job].since = p.now
	p.wait(r.job)
}

// visible returns the capacity that an initial run holds on open nodes. Its end makes no room on cordoned ones.
func (p *player) visible(r *run) []topology.Held {
	hidden := func(h topology.Held) bool { return p.closed[h.Node].why != 0 }
	if !slices.ContainsFunc(r.holds, hidden) {
		return r.holds
	}
	return slices.DeleteFunc(slices.Clone(r.holds), hidden)
}
