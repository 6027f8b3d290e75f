package direct

import (
	"math"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// Forever is how long a gang runs that does not end by itself.
const Forever = math.MaxInt64

// Job is a gang that wants to run, with what is known of it and what is not.
type Job struct {
	Name string
	// Order is its place in the queue. It keeps it when it is preempted.
	Order decision.Order
	// Gang is what it asks for, Needed how many of its members have to start together; late ones come on top of them.
	Gang   topology.Gang
	Needed int
	// Arrives is the instant at which it comes; before the scene's Now if it waits already.
	Arrives int64
	// Runs is how long it runs, Forever if it does not end by itself. Nobody who decides knows it.
	Runs int64
	// Promises is how long it runs at most, as far as those who decide know; 0 if nobody knows. It may be wrong.
	Promises int64
	// Saves is how often it saves its work, from when it starts; 0 for never. After a preemption it goes on from there.
	Saves int64
	// Accelerators is how many it holds while it runs.
	Accelerators int64
	// Preemptible says that gangs of a higher priority may end it.
	Preemptible bool
}

// Scene is a fleet, what runs on it, and what comes.
type Scene struct {
	Now int64
	// Ledger is the fleet; what the running gangs hold is not free in it. It is not changed.
	Ledger topology.Ledger
	// Accelerator is the entry of a Capacity that counts accelerators.
	Accelerator int
	// Running is what runs already, with the ends that those who decide know: topology.EndUnknown for what is not meant to
	// end, decision.Someday for what ends nobody knows when. None of it is preempted.
	Running []topology.Running
	// RunningEnds are the instants at which these really end, Forever for never; nil if all end as is known of them, and
	// what ends someday does not.
	RunningEnds []int64
	Jobs        []Job
	// Closed says of each node that nothing may start there, whatever happens; nil for none.
	Closed []bool
	// Events are what happens to nodes, in the order in which it does.
	Events []NodeEvent
}

// NodeEvent is something that happens to nodes.
type NodeEvent struct {
	At int64
	// Kind is NodesFailed, NodesDrained or NodesReturned.
	Kind Kind
	// Nodes are their numbers in the tree.
	Nodes []int
}

// Foresight is what those who decide know of ends.
type Foresight int

// What may be known.
const (
	// Promised ends are known: what owners say (Job.Promises), and what is known of what runs (Running.End).
	Promised Foresight = iota
	// Perfect foresight knows when everything really ends.
	Perfect
)

// Discipline is who may pass the first of the queue.
type Discipline int

// The disciplines.
const (
	// Backfill is the product's: a place is kept for the first that waits, and others pass only where, and for as long as,
	// they cannot delay it.
	Backfill Discipline = iota
	// Strict lets nobody pass the first that waits, unless nobody's end would ever help that one.
	Strict
	// Greedy keeps no place: whoever fits starts.
	Greedy
)

// String returns the name.
func (d Discipline) String() string {
	switch d {
	case Backfill:
		return "backfill"
	case Strict:
		return "strict"
	case Greedy:
		return "greedy"
	}
	return "unknown"
}

// Options are how a scene is played.
type Options struct {
	Discipline Discipline
	// Preempt lets the first that waits end gangs of a lower priority: those that lose least, at once, and only if it
	// starts in their place.
	Preempt bool
	// Until is the last instant that is played; 0 plays until nothing happens any more.
	Until int64
	// Foresight is what is known of ends.
	Foresight Foresight
	// Policy chooses nodes instead of the product; nil for the product. It ends nobody, whatever Preempt says. A gang of which
	// it cannot place all members has those that are needed placed. Backfill is EASY then.
	Policy Policy
}

// Kind is what happened.
type Kind int

// What happens to gangs, and to nodes.
const (
	// Arrived is said of every gang that comes.
	Arrived Kind = iota
	// Refused is said once of a gang that waits, when it is clear that it does not start at once.
	Refused
	// Kept is said when a place begins to be kept for a gang, and when its instant or its nodes are others than before.
	Kept
	// Started and Ended are said of every run; Preempted instead of Ended if others needed its place.
	Started
	Ended
	Preempted
	// Disrupted is said instead of Ended if a node was lost. A job waits again then, and keeps its place in the queue.
	Disrupted
	// NodesFailed and NodesDrained take nothing until NodesReturned.
	NodesFailed
	NodesDrained
	NodesReturned
)

// String returns the name.
func (k Kind) String() string {
	switch k {
	case Arrived:
		return "arrived"
	case Refused:
		return "refused"
	case Kept:
		return "kept"
	case Started:
		return "started"
	case Ended:
		return "ended"
	case Preempted:
		return "preempted"
	case Disrupted:
		return "disrupted"
	case NodesFailed:
		return "nodes-failed"
	case NodesDrained:
		return "nodes-drained"
	case NodesReturned:
		return "nodes-returned"
	}
	return "unknown"
}

// Event is something that happens to a gang, or to nodes.
type Event struct {
	At   int64
	Kind Kind
	// Job is an index into the scene's jobs; if it is -1, Running is one into what ran from the beginning. Both are -1 of
	// what happens to nodes.
	Job, Running int
	// Name is the gang's.
	Name string
	// Placement is where it goes, if it started, or the place that is kept.
	Placement topology.Placement
	// Reserved is the instant from which the kept place is its own: decision.Someday if nobody knows.
	Reserved int64
	// Nodes are those that it happened to.
	Nodes []int
}
