package engine

import (
	"context"
	"time"

	"github.com/lockstep-project/lockstep/simulator/scenario"
)

// Engine decides who starts when and where.
type Engine interface {
	// Run plays the scenario to its end and tells what happens in the order in which it happens, all in the caller's goroutine. If
	// the context ends before, it returns its error, and what was told is how far it came. Any other error is a scenario that
	// cannot be played, or a fault.
	Run(ctx context.Context, s *scenario.Scenario, w Watcher) error
}

// Watcher is told what happens.
type Watcher interface {
	// Happens tells an event. It has to be copied by who keeps its slices.
	Happens(e Event)
	// Decides tells what a decision cost. That depends on the machine, and belongs into no log.
	Decides(d Decision)
}

// Decision is a question that was answered.
type Decision struct {
	// Took is wall time.
	Took time.Duration
	// Members is how many the gang has that was asked about, Placed says that it starts.
	Members int
	Placed  bool
}

// Nobody is an index that means none.
const Nobody = -1

// Event is something that happened.
type Event struct {
	// At is since the scenario's beginning.
	At   time.Duration
	Kind Kind
	// Job is an index into the scenario's jobs, Running one into what ran from the beginning; Nobody for none.
	Job, Running int
	// Nodes are numbers in the tree. Started has the node of each rank that runs, and so have Joined and Shrunk, Kept the leased ones,
	// NodesFailed, NodesDrained, NodesCordoned and NodesReturned those that it happened to.
	Nodes []int
	// From is the instant of the lease, of Kept; scenario.Forever if it rests on guesses.
	From time.Duration
}

// Kind is what happened.
type Kind string

// What happens. Of each job: submitted, then started, then ended; each start may be followed by preempted or disrupted instead of
// ended, and then the job waits again and keeps its place in the queue. An elastic job may be joined while it runs.
const (
	Submitted Kind = "submitted"
	// Refused is said once of a job that does not start at the instant at which it begins to wait.
	Refused Kind = "refused"
	// Kept is reported when a waiting job has a new lease that binds others, and when its nodes or its known instant change.
	Kept    Kind = "kept"
	Started Kind = "started"
	// Joined is reported when waiting members of an elastic job, or those that replace lost ones, join those that run.
	Joined Kind = "joined"
	Ended  Kind = "ended"
	// Suspended is reported of a job that waits, and that does not from then on; Resumed when it waits again.
	Suspended Kind = "suspended"
	Resumed   Kind = "resumed"
	// Evicted is reported when the preemption of a job with a grace begins. The job holds its nodes and runs on until it is preempted
	// when the grace is over, or ended or disrupted before. A job without a grace is preempted at once, and never evicted.
	Evicted Kind = "evicted"
	// Preempted is said of a job that has to leave for another one, Disrupted of one that lost a node.
	Preempted Kind = "preempted"
	Disrupted Kind = "disrupted"
	// Paused is said instead of Disrupted of a job of which only the members on lost nodes are replaced: it trains nothing until it is joined
	// by them. Its Nodes are the lost ones.
	Paused Kind = "paused"
	// Shrunk is said of an elastic job that loses members, to another job or with a node, and goes on with the others. Its Nodes are theirs, by rank; -1
	// for a rank without one.
	Shrunk       Kind = "shrunk"
	NodesFailed  Kind = "nodes-failed"
	NodesDrained Kind = "nodes-drained"
	// NodesCordoned is reported of nodes on which nothing starts; what runs there stays.
	NodesCordoned Kind = "nodes-cordoned"
	NodesReturned Kind = "nodes-returned"
)
