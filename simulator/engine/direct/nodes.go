package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// closure is why a node takes nothing, and what would be free on it otherwise: in the ledger it has nothing.
type closure struct {
	why  reasons
	free topology.Capacity
}

// reasons are why a node takes nothing: several may hold at once.
type reasons uint8

const (
	// cordoned nodes take nothing from the beginning on, and no event changes that.
	cordoned reasons = 1 << iota
	// away are nodes that failed, or were drained, and have not returned.
	away
)

// close lets nothing start on a node for a reason.
func (e *player) close(node int, why reasons) {
	c := &e.closed[node]
	if c.why == 0 {
		c.free = e.book.Put(node, make(topology.Capacity, len(e.ledger.Free[node])))
	}
	c.why |= why
}

// open takes a reason away, and lets the node take what fits if none is left.
func (e *player) open(node int, why reasons) {
	c := &e.closed[node]
	if c.why == 0 {
		return
	}
	if c.why &^= why; c.why == 0 {
		e.book.Put(node, c.free)
		c.free = nil
	}
}

// happen lets something happen to nodes, and ends who ran there: nobody saves work elsewhere, so a job begins again.
func (e *player) happen(event NodeEvent) {
	e.emit(Event{At: e.now, Kind: event.Kind, Job: nobody, Running: nobody, Nodes: event.Nodes})
	e.changed, e.head.fresh = true, false
	if event.Kind == NodesReturned {
		for _, node := range event.Nodes {
			e.open(node, away)
		}
		return
	}
	for _, node := range event.Nodes {
		e.close(node, away)
	}
	lost := make(map[int]bool, len(event.Nodes))
	for _, node := range event.Nodes {
		lost[node] = true
	}
	for _, r := range slices.Clone(e.live()) {
		if slices.ContainsFunc(r.holds, func(h topology.Held) bool { return lost[h.Node] }) {
			e.disrupt(r)
		}
	}
}

// disrupt ends what lost a node. A job waits again; what ran from the beginning is gone.
func (e *player) disrupt(r *run) {
	e.ends.remove(r)
	e.finish(r, Disrupted)
	if r.job == nobody {
		return
	}
	e.jobs[r.job].since, e.jobs[r.job].left = e.now, e.scene.Jobs[r.job].Runs
	e.wait(r.job)
}

// visible are the holds of a run on nodes that take something: when it ends, nothing comes of the others. Whether a node does may
// change, but what is on it then has ended before.
func (e *player) visible(r *run) []topology.Held {
	hidden := func(h topology.Held) bool { return e.closed[h.Node].why != 0 }
	if !slices.ContainsFunc(r.holds, hidden) {
		return r.holds
	}
	return slices.DeleteFunc(slices.Clone(r.holds), hidden)
}
