package engine

import (
	"context"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Engine decides when and where each job starts.
type Engine interface {
	// Run plays the scenario to its end and reports the events in their order, all in the caller's goroutine. If the
	// context ends before, it returns its error, and the reported events are those until then. Any other error is a
	// scenario that cannot be played, or a fault.
	Run(ctx context.Context, s *scenario.Scenario, w Watcher) error
}

// Watcher receives events and decisions.
type Watcher interface {
	// Happens reports an event. Watchers must copy the event's slices if they retain them.
	Happens(e Event)
	// Decides reports the cost of a decision. It depends on the machine, and must not enter a log.
	Decides(d Decision)
}

// Decision is a question that was answered.
type Decision struct {
	// Took is wall time.
	Took time.Duration
	// Members is the number of the evaluated gang's members, Placed says that it starts.
	Members int
	Placed  bool
}

// None is an index that means none of them.
const None = -1

// Event is something that happened.
type Event struct {
	// At is since the scenario's beginning.
	At   time.Duration
	Kind Kind
	// Job is an index into the scenario's jobs, Running one into the units that ran from the beginning; -1 for none.
	Job, Running int
	// Nodes are numbers in the tree: for Started, Joined and Shrunk the node of each running rank; for Leased the
	// leased nodes; for NodesFailed, NodesDrained, NodesCordoned and NodesReturned the affected nodes.
	Nodes []int
	// From is the instant of the lease, for Leased; scenario.Forever if it rests on guesses.
	From time.Duration
}

// Kind is the kind of an event.
type Kind string

// Kinds of events. Each job is submitted, then started, then ended. A start may instead be followed by preempted or
// disrupted; the job then waits again and retains its place in the queue. An elastic job may be joined while it runs.
const (
	Submitted Kind = "submitted"
	// Refused is said once of a job that does not start at the instant at which it begins to wait.
	Refused Kind = "refused"
	// Leased is reported when a waiting job has a new lease that binds other jobs, and when its nodes or its known
	// instant change.
	Leased  Kind = "kept"
	Started Kind = "started"
	// Joined is reported when waiting members of an elastic job, or those that replace lost ones, join those that run.
	Joined Kind = "joined"
	Ended  Kind = "ended"
	// Suspended is reported of a job that waits, and that does not from then on; Resumed when it waits again.
	Suspended Kind = "suspended"
	Resumed   Kind = "resumed"
	// Evicted is reported when the preemption of a job with a grace begins. The job holds its nodes and runs on until
	// it is preempted when the grace is over, or ended or disrupted before. A job without a grace is preempted at once,
	// and never evicted.
	Evicted Kind = "evicted"
	// Preempted is reported of a job that has to leave for another one, Disrupted of one that lost a node.
	Preempted Kind = "preempted"
	Disrupted Kind = "disrupted"
	// Paused is reported instead of Disrupted for a job that replaces only the members on lost nodes: it trains nothing
	// until they have joined it. Its Nodes are the lost ones.
	Paused Kind = "paused"
	// Shrunk is reported when an elastic job loses members, to another job or with a node, and continues with the
	// others. Nodes are the nodes of those, by rank; -1 for a rank without one.
	Shrunk       Kind = "shrunk"
	NodesFailed  Kind = "nodes-failed"
	NodesDrained Kind = "nodes-drained"
	// NodesCordoned is reported of nodes on which nothing starts; running units stay.
	NodesCordoned Kind = "nodes-cordoned"
	NodesReturned Kind = "nodes-returned"
)
