package progress

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// stage is the state of a job.
type stage uint8

const (
	absent stage = iota
	waiting
	running
	ended
	stages
)

// past is the history of a job that waits, as far as it explains the wait.
type past uint8

const (
	unasked past = iota
	refused
	preempted
	disrupted
)

// counts sums up the events. It belongs to the engine's goroutine.
type counts struct {
	scene *scenario.Scenario
	stock *stock
	uses  history
	at    time.Duration
	// events is the number of events, starts that of pods that started.
	events, starts uint64
	stage          []stage
	// number is the number of jobs in each stage, asked the number of accelerators that those want together.
	number [stages]int
	asked  [stages]int64
	past   []past
	// since is the time at which a job began to wait, holds the node of each rank while it runs.
	since []time.Duration
	holds [][]int32
	// spare are slices of holds that are not needed.
	spare [][]int32
	// oldest is no job before which waits, newest no job after which has arrived.
	oldest, newest int
	kept           kept
	took           histogram
}

// kept is the leased place of the first waiting job that has one.
type kept struct {
	job   int
	from  time.Duration
	nodes int
}

func newCounts(s *scenario.Scenario) *counts {
	n := len(s.Jobs)
	c := &counts{
		scene: s, stock: newStock(s), stage: make([]stage, n), past: make([]past, n),
		since: make([]time.Duration, n), holds: make([][]int32, n), newest: -1, kept: kept{job: engine.None},
	}
	c.number[absent] = n
	for _, j := range s.Jobs {
		c.asked[absent] += j.Accelerators
	}
	for i := range s.Running {
		c.held(i, 1)
	}
	return c
}

// apply counts an event.
func (c *counts) apply(e engine.Event) {
	c.events++
	if e.At > c.at {
		c.uses.add(c.at, e.At, c.stock.inUse, c.stock.there)
		c.at = e.At
	}
	switch e.Kind {
	case engine.Submitted, engine.Resumed:
		c.wait(e.Job, unasked)
	case engine.Suspended:
		c.move(e.Job, absent)
	case engine.Refused:
		if c.past[e.Job] == unasked {
			c.past[e.Job] = refused
		}
	case engine.Leased:
		if c.leads(e.Job) {
			c.kept = kept{job: e.Job, from: e.From, nodes: len(e.Nodes)}
		}
	case engine.Started:
		c.start(e)
	case engine.Joined:
		c.join(e)
	case engine.Paused:
		c.pause(e)
	case engine.Shrunk:
		c.shrink(e)
	case engine.Ended:
		c.leave(e, unasked)
	case engine.Evicted: // it runs on until it is preempted
	case engine.Preempted:
		c.leave(e, preempted)
	case engine.Disrupted:
		c.leave(e, disrupted)
	case engine.NodesFailed, engine.NodesDrained, engine.NodesCordoned:
		for _, node := range e.Nodes {
			c.stock.withdraw(node)
		}
	case engine.NodesReturned:
		for _, node := range e.Nodes {
			if !c.scene.Closed[node] {
				c.stock.restore(node)
			}
		}
	}
}

// leads reports whether a waiting job precedes the one whose lease is shown. Several jobs may have one; members that
// wait for a job that runs are not shown.
func (c *counts) leads(job int) bool {
	first := c.kept.job
	if c.stage[job] != waiting {
		return false
	}
	if first < 0 || c.stage[first] != waiting || job == first {
		return true
	}
	a, b := c.scene.Jobs[job].Priority, c.scene.Jobs[first].Priority
	return a > b || a == b && job < first
}

// move puts a job into another stage.
func (c *counts) move(job int, to stage) {
	from, asks := c.stage[job], c.scene.Jobs[job].Accelerators
	c.number[from]--
	c.asked[from] -= asks
	c.number[to]++
	c.asked[to] += asks
	c.stage[job] = to
}

func (c *counts) wait(job int, because past) {
	c.move(job, waiting)
	c.past[job], c.since[job] = because, c.at
	c.oldest, c.newest = min(c.oldest, job), max(c.newest, job)
}

func (c *counts) start(e engine.Event) {
	c.move(e.Job, running)
	if c.kept.job == e.Job {
		c.kept.job = engine.None
	}
	nodes := c.sheet()
	for _, node := range e.Nodes {
		nodes = append(nodes, int32(node))
		if node >= 0 {
			c.starts++
		}
	}
	c.holds[e.Job] = nodes
	c.ranks(e.Job, 1)
}

// join lets more members of a running job run.
func (c *counts) join(e engine.Event) {
	c.ranks(e.Job, -1)
	holds := c.holds[e.Job]
	for rank, node := range e.Nodes {
		switch {
		case rank >= len(holds):
			holds = append(holds, int32(node))
			c.starts++
		case holds[rank] < 0 && node >= 0:
			holds[rank] = int32(node)
			c.starts++
		}
	}
	c.holds[e.Job] = holds
	c.ranks(e.Job, 1)
}

// pause takes the members of a running job off nodes that it lost.
func (c *counts) pause(e engine.Event) {
	c.ranks(e.Job, -1)
	for rank, node := range c.holds[e.Job] {
		if slices.Contains(e.Nodes, int(node)) {
			c.holds[e.Job][rank] = -1
		}
	}
	c.ranks(e.Job, 1)
}

// shrink takes the members off their nodes that an elastic job lost.
func (c *counts) shrink(e engine.Event) {
	c.ranks(e.Job, -1)
	for rank, node := range e.Nodes {
		c.holds[e.Job][rank] = int32(node)
	}
	c.ranks(e.Job, 1)
}

// sheet is an empty slice, a used one if there is one.
func (c *counts) sheet() []int32 {
	last := len(c.spare) - 1
	if last < 0 {
		return nil
	}
	sheet := c.spare[last]
	c.spare = c.spare[:last]
	return sheet
}

// leave lets a job, or an initial run, give back its accelerators. A job that did not end waits again.
func (c *counts) leave(e engine.Event, because past) {
	if e.Job < 0 {
		c.held(e.Running, -1)
		return
	}
	c.ranks(e.Job, -1)
	c.spare = append(c.spare, c.holds[e.Job][:0])
	c.holds[e.Job] = nil
	if because == unasked {
		c.move(e.Job, ended)
		return
	}
	c.wait(e.Job, because)
}

// ranks takes the requests of the placed ranks of a job, sign times.
func (c *counts) ranks(job int, sign int64) {
	gang := &c.scene.Jobs[job].Gang
	for rank, node := range c.holds[job] {
		if node >= 0 {
			demand := gang.Shapes[gang.Members[rank].Shape].Demand
			c.stock.take(int(node), sign*demand[c.scene.Accelerator])
		}
	}
}

// held takes the capacity of an initial unit, sign times.
func (c *counts) held(i int, sign int64) {
	for _, h := range c.scene.Running[i].Holds {
		c.stock.take(h.Node, sign*h.Demand[c.scene.Accelerator])
	}
}

// snapshot is a copy of all that is shown.
func (c *counts) snapshot() Snapshot {
	s := Snapshot{
		Fleet: c.scene.Fleet, Trace: c.scene.Trace, Virtual: c.at,
		Jobs: len(c.stage), Submitted: len(c.stage) - c.number[absent],
		Ended: c.number[ended], Running: c.number[running], Waiting: c.number[waiting],
		WaitingGPUs: c.asked[waiting], GPUs: c.stock.there, GPUsInUse: c.stock.inUse,
		Events: c.events, Pods: c.starts, Decisions: c.took.count,
		P50: c.took.quantile(0.5), P99: c.took.quantile(0.99),
		Level: c.stock.level, Domains: slices.Clone(c.stock.domains), Uses: c.uses.shares(),
	}
	for _, total := range c.stock.total {
		s.Fitted += total
	}
	for c.oldest <= c.newest && c.stage[c.oldest] != waiting {
		c.oldest++
	}
	if first := c.kept.job; first >= 0 && c.stage[first] == waiting {
		s.Queue = append(s.Queue, c.gang(first))
	}
	for job := c.oldest; job <= c.newest; job++ {
		if c.stage[job] != waiting {
			continue
		}
		s.OldestWait = max(s.OldestWait, c.at-c.since[job])
		s.LargestWaiting = max(s.LargestWaiting, c.scene.Jobs[job].Accelerators)
		if len(s.Queue) < mostGangs && job != c.kept.job {
			s.Queue = append(s.Queue, c.gang(job))
		}
	}
	return s
}

func (c *counts) gang(job int) Gang {
	j := &c.scene.Jobs[job]
	return Gang{
		Name: j.ID, GPUs: j.Accelerators, Pods: len(j.Gang.Members), Waits: c.at - c.since[job], Why: c.why(job),
	}
}
