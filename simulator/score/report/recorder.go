package report

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Recorder is an engine.Watcher that records the places of jobs, the absence of nodes, and the costs of decisions. It
// needs some tens of bytes for each start and each node that it took.
type Recorder struct {
	scene *scenario.Scenario
	nodes []node
	// jobs and running have the current stay of each job and of each initial run, none for no stay.
	jobs, running []int
	stays         []stay
	outages       []outage
	latency       latency
	now           time.Duration
}

// none is an index that means no stay or outage.
const none = -1

// most is the largest number of squares of a node. Of nodes with more accelerators, a square stands for several.
const most = 32

// node is a node while events arrive.
type node struct {
	// per is the number of accelerators that a square stands for, squares the number of squares, taken those in use.
	per     int64
	squares int
	taken   uint32
	outage  int
}

// stay is a gang on its nodes from its start to its end.
type stay struct {
	// job is an index into the scenario's jobs, or -1 minus one into the initial units.
	job      int
	from, to time.Duration
	holds    []hold
}

// hold are the squares of a node that are a stay's.
type hold struct {
	node    int32
	squares uint32
}

// outage is a node that is not there.
type outage struct {
	node     int
	from, to time.Duration
	kind     engine.Kind
}

// NewRecorder listens to a scenario that is about to be played.
func NewRecorder(s *scenario.Scenario) *Recorder {
	r := &Recorder{
		scene: s, nodes: make([]node, s.Ledger.Len()),
		jobs: slices.Repeat([]int{none}, len(s.Jobs)), running: slices.Repeat([]int{none}, len(s.Running)),
	}
	for i := range r.nodes {
		accelerators := s.Ledger.Total[i][s.Accelerator]
		per := max(1, (accelerators+most-1)/most)
		r.nodes[i] = node{per: per, squares: int((accelerators + per - 1) / per), outage: none}
	}
	for i := range s.Running {
		r.running[i] = len(r.stays)
		r.stays = append(r.stays, stay{job: none - i, to: scenario.Forever})
		for _, held := range s.Running[i].Holds {
			r.take(held.Node, held.Demand[s.Accelerator])
		}
	}
	return r
}

// Happens remembers an event.
func (r *Recorder) Happens(e engine.Event) {
	r.now = max(r.now, e.At)
	switch e.Kind {
	case engine.Started:
		if e.Job != engine.None {
			r.starts(e)
		}
	case engine.Joined, engine.Shrunk: // another stay, with other members
		r.leaves(&r.jobs[e.Job], e.At)
		r.starts(e)
	case engine.Paused: // another stay, without the lost members
		r.pauses(e)
	case engine.Ended, engine.Preempted, engine.Disrupted:
		if e.Job != engine.None {
			r.leaves(&r.jobs[e.Job], e.At)
		} else if e.Running != engine.None {
			r.leaves(&r.running[e.Running], e.At)
		}
	case engine.NodesFailed, engine.NodesDrained, engine.NodesCordoned:
		for _, i := range e.Nodes {
			r.returns(i, e.At)
			r.nodes[i].outage = len(r.outages)
			r.outages = append(r.outages, outage{i, e.At, scenario.Forever, e.Kind})
		}
	case engine.NodesReturned:
		for _, i := range e.Nodes {
			r.returns(i, e.At)
		}
	case engine.Submitted,
		engine.Suspended,
		engine.Resumed,
		engine.Refused,
		engine.Leased,
		engine.Evicted: // no job moves
	}
}

// Decides records the cost of a decision.
func (r *Recorder) Decides(d engine.Decision) { r.latency.add(d) }

// starts gives a job its squares, rank by rank.
func (r *Recorder) starts(e engine.Event) {
	gang := &r.scene.Jobs[e.Job].Gang
	r.jobs[e.Job] = len(r.stays)
	r.stays = append(r.stays, stay{job: e.Job, from: e.At, to: scenario.Forever})
	for rank, at := range e.Nodes {
		if at >= 0 && rank < len(gang.Members) {
			r.take(at, gang.Shapes[gang.Members[rank].Shape].Demand[r.scene.Accelerator])
		}
	}
	holds := r.stays[len(r.stays)-1].holds
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.node, b.node) })
}

// pauses lets a job continue with its squares on the nodes that it did not lose.
func (r *Recorder) pauses(e engine.Event) {
	before := r.jobs[e.Job]
	if before == none {
		return
	}
	r.leaves(&r.jobs[e.Job], e.At)
	r.jobs[e.Job] = len(r.stays)
	r.stays = append(r.stays, stay{job: e.Job, from: e.At, to: scenario.Forever})
	s := &r.stays[len(r.stays)-1]
	for _, h := range r.stays[before].holds {
		if !slices.Contains(e.Nodes, int(h.node)) {
			s.holds = append(s.holds, h)
			r.nodes[h.node].taken |= h.squares
		}
	}
}

// take gives the last stay squares of a node, the first that are free. A node that is booked twice has too few; the
// scorecard reports that.
func (r *Recorder) take(at int, accelerators int64) {
	n, s := &r.nodes[at], &r.stays[len(r.stays)-1]
	var mine uint32
	for range (accelerators + n.per - 1) / n.per {
		free := bits.TrailingZeros32(^n.taken)
		if free >= n.squares {
			break
		}
		n.taken |= 1 << free
		mine |= 1 << free
	}
	if mine == 0 {
		return
	}
	if last := len(s.holds) - 1; last >= 0 && s.holds[last].node == int32(at) {
		s.holds[last].squares |= mine
		return
	}
	s.holds = append(s.holds, hold{int32(at), mine})
}

// leaves ends a stay, if there is one, and then there is none.
func (r *Recorder) leaves(index *int, at time.Duration) {
	if *index == none {
		return
	}
	s := &r.stays[*index]
	s.to = at
	for _, h := range s.holds {
		r.nodes[h.node].taken &^= h.squares
	}
	*index = none
}

// returns ends the outage of a node, if it has one.
func (r *Recorder) returns(at int, when time.Duration) {
	if n := &r.nodes[at]; n.outage != none {
		r.outages[n.outage].to = when
		n.outage = none
	}
}
