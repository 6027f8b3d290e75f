package direct

import (
	"cmp"
	"math"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/topology"
)

// Forever is the run time of a gang that does not end by itself, and the instant of an event that is not expected.
const Forever = math.MaxInt64

// Job is a gang that arrives.
type Job struct {
	// Name is unique in its scene.
	Name string
	// Order is the job's place in the queue. Preemption does not change it.
	Order contention.Order
	// Gang is the request of the job.
	Gang topology.Gang
	// Needed is the number of members that have to start together. Late members are additional. Members that do not
	// start with the others never do.
	Needed int
	// Min makes the job elastic: it starts with as many first members as fit, at least Min, and the others wait in its
	// place in the queue and join it while it runs. Needed is ignored then. 0 stands for a job that is not elastic.
	// Policies ignore Min.
	Min int
	// Shrinks lets an elastic job give members beyond Min to jobs of a higher priority, and take them back behind all
	// waiting jobs. It resumes from its last checkpoint whenever members leave or join, and its work takes longer with
	// fewer members (by Pace).
	Shrinks bool
	// Arrives is the second of the arrival. It is before the scene's Now if the job waits already.
	Arrives int64
	// Past is the time of the job's arrival after that second: from 0 to less than a second.
	Past time.Duration
	// Runs is the run time of the job, Forever if it does not end by itself. No decision depends on it.
	Runs int64
	// Promises is the longest run time as known in advance, 0 if unknown. It may be wrong.
	Promises int64
	// Saves is the time between two checkpoints, from the first step on, 0 for no checkpoints. A job that is preempted,
	// or loses a node, resumes from the last: checkpoints are on storage that all nodes share.
	Saves int64
	// Kind is the job's key for runs that take about as long, for Options.Learns.
	Kind forecast.Key
	// Accelerators is the number that all members hold together.
	Accelerators int64
	// Grace is the termination grace in seconds.
	Grace int64
	// Preemptible lets jobs of a higher priority preempt this one. NeverPreempts prevents this one from preempting
	// others.
	Preemptible, NeverPreempts bool
	// Replaces has members that lose their node replaced while the others stay on theirs (lockstep.dev/on-disruption:
	// replace). The gang trains nothing until it is whole, and then resumes from its last checkpoint. Policies ignore
	// it, as elastic jobs do.
	Replaces bool
	// Sweep is the set of trials to which it belongs. Policies ignore it.
	Sweep contention.Sweep
	// Bound are the nodes of a DaemonSet's pods, by rank: they start there when the job arrives, whatever is leased,
	// and stay whatever happens to the nodes. nil for all other jobs.
	Bound []int
}

// elastic reports whether members may wait while the job runs.
func (j *Job) elastic() bool { return j.Min > 0 && j.Min < len(j.Gang.Members) }

// Running is a unit that runs at the beginning. It is never preempted.
type Running struct {
	Name  string
	Holds []topology.Held
	// Started is the instant at which it started. It may be before the scene's Now.
	Started int64
	// Expected is the end that is known.
	Expected contention.End
	// Ends is the instant of the end, Forever for none. No decision depends on it.
	Ends int64
	// Sweep is the set of trials to which it belongs.
	Sweep contention.Sweep
}

// Scene is a fleet, its running units, and the jobs that arrive.
type Scene struct {
	Now int64
	// Ledger is the fleet. Its Free excludes the capacity that Running holds. It is not modified.
	Ledger topology.Ledger
	// Accelerator is the entry of a Capacity that counts accelerators.
	Accelerator int
	Running     []Running
	Jobs        []Job
	// Closed is indexed by node: true for a node on which nothing ever starts. nil stands for none.
	Closed []bool
	// Events are sorted by instant.
	Events []SceneEvent
	// Pace returns the rate at which a run of a job turns time into work on nodes by rank, if so many seconds of its
	// work are saved; Slowest that of its slowest run. nil stands for runs that take Runs on any nodes.
	Pace    func(job int, nodes []int, done int64) cost.Pace
	Slowest func(job int) cost.Pace
}

// SceneEvent is a failure, a drain, a cordon or a return of nodes, an extension of a running unit, or a change of a
// waiting job.
type SceneEvent struct {
	At int64
	// Kind is NodesFailed, NodesDrained, NodesCordoned, NodesReturned, Extended, Suspended or Resumed.
	Kind Kind
	// Nodes are numbers in the tree.
	Nodes []int
	// Running is the index of the initial unit, of Extended.
	Running int
	// Job is the index of the job, of Suspended and Resumed.
	Job int
	// Since is the job's Order.Since from then on, of Resumed; zero if it stays.
	Since time.Time
}

// Foresight is the scheduler's knowledge of ends.
type Foresight int

// The foresights.
const (
	// Promised ends are known: Job.Promises and Running.Expected.
	Promised Foresight = iota
	// Perfect foresight knows all ends.
	Perfect
)

// Discipline decides which entities may pass the first that waits. The first three are a contention.Policy each.
type Discipline int

// The disciplines.
const (
	// Promise is the product's: contention.DefaultPolicy.
	Promise Discipline = iota
	// Unreserved is Promise without leases: each entity that fits starts.
	Unreserved
	// Backfill is contention.Backfill, in the order of arrival. With a Policy it is EASY.
	Backfill
	// Strict lets no entity pass the first that waits, unless no expected end makes room for that one.
	Strict
	// Greedy leases no place: each entity that fits starts, in the order of arrival.
	Greedy
	// Window is Slurm's, with a Policy: many planned starts inside a window (see windowed).
	Window
	// Evicting is Greedy, with a Policy, and evicts as a ClusterQueue of Kueue does (see evicting).
	Evicting
)

// String returns the name.
func (d Discipline) String() string {
	switch d {
	case Backfill:
		return "backfill"
	case Promise:
		return "promise"
	case Unreserved:
		return "unreserved"
	case Strict:
		return "strict"
	case Greedy:
		return "greedy"
	case Window:
		return "window"
	case Evicting:
		return "evicting"
	}
	return "unknown"
}

// Options configure how a scene is played.
type Options struct {
	Discipline Discipline
	// Preempt lets entities preempt jobs of a lower priority (Policy.Preemption of the machine).
	Preempt bool
	// Until is the last instant that is played; 0 plays until nothing happens any more.
	Until     int64
	Foresight Foresight
	// Learns predicts the run times of jobs that promise none from those that have ended, with Promised foresight.
	Learns bool
	// Foresees forecasts starts, with Learns.
	Foresees Foresees
	// Unpriced has entities evict whatever that costs, by contention.UnpricedTerms.
	Unpriced bool
	// Apart has gangs that ask for no topology start on any nodes (contention.Discipline.Together).
	Apart bool
	// Trusting has the idle of a lease count once while its instant rests on guesses, as it does otherwise
	// (contention.Discipline.GuessWeight).
	Trusting bool
	// Rigid has elastic jobs start with all members, and never give one.
	Rigid bool
	// Unlimited has sweeps run as many trials as fit.
	Unlimited bool
	// Slack, Leases and Idle replace contention.Discipline.Slack, in hundredths, contention.Policy.MaxLeases and
	// contention.Discipline.Budget, in seconds; 0 for those of the product.
	Slack, Idle int64
	Leases      int
	// Policy chooses nodes instead of the product, nil for the product. It preempts nothing, whatever Preempt is. If it
	// cannot place all members of a gang, it is asked for the needed ones. Promise is Backfill then.
	Policy Policy
}

// rules returns the numbers that the machine is driven with.
func (o Options) rules() contention.Policy {
	rules := contention.DefaultPolicy()
	rules.Preemption = o.Preempt && o.Policy == nil
	if o.Unpriced {
		rules.Terms = contention.UnpricedTerms()
	}
	if o.Apart {
		rules.Together = 0
	}
	if o.Trusting {
		rules.GuessWeight = 1
	}
	rules.Slack, rules.Budget = cmp.Or(o.Slack, rules.Slack), cmp.Or(o.Idle, rules.Budget)
	rules.MaxLeases = cmp.Or(o.Leases, rules.MaxLeases)
	if o.Discipline == Unreserved {
		rules.MaxLeases = 0
		return rules
	}
	if o.Discipline == Promise && o.Policy == nil {
		return rules
	}
	rules.Discipline = contention.Backfill()
	switch {
	case o.Discipline == Greedy:
		rules.MaxLeases = 0
		return rules
	case o.Discipline == Backfill && o.Policy == nil:
		return rules
	}
	// EASY (Lifka, "The ANL/IBM SP Scheduling System", 1995) and strict queues reserve a place for the first of the
	// queue alone, for as long as it takes. None gives it up.
	rules.MaxLeases, rules.Strict = 1, o.Discipline == Strict
	rules.Budget, rules.Horizon, rules.CeilingPart = 0, 0, 0
	return rules
}

// Kind is the kind of an event.
type Kind int

// The kinds of events of jobs, of initial units, and of nodes.
const (
	// Arrived is reported of every job.
	Arrived Kind = iota
	// Refused is reported once of a job that does not start at the instant at which it begins to wait.
	Refused
	// Leased is reported when a closed lease is new, and when its place or its firm instant changes.
	Leased
	// Started and Ended are reported of every run; Preempted instead of Ended if another job needs the place.
	Started
	// Joined is reported when waiting members of an elastic job join it.
	Joined
	Ended
	Preempted
	// Evicted is reported when the preemption of a job with a grace begins. The job runs on until it is Preempted when
	// the grace is over, Ended if it ends before, or Disrupted.
	Evicted
	// Disrupted is reported instead of Ended if a node was lost. The job then waits again, and retains its place in the
	// queue.
	Disrupted
	// Paused is reported instead of Disrupted if only the members on lost nodes are replaced. Joined follows when they
	// are.
	Paused
	// Shrunk is reported when an elastic job loses members and continues.
	Shrunk
	// NodesFailed, NodesDrained and NodesCordoned are reported of nodes on which nothing starts until NodesReturned.
	// Running units on NodesCordoned stay.
	NodesFailed
	NodesDrained
	NodesCordoned
	NodesReturned
	// Suspended is reported of a job that waits, and that does not from then on; Resumed when it waits again.
	Suspended
	Resumed
	// Extended is not reported: the end of an initial unit is no longer known.
	Extended
)

// String returns the name.
func (k Kind) String() string {
	names := [...]string{
		Arrived: "arrived", Refused: "refused", Leased: "kept", Started: "started", Joined: "joined", Ended: "ended",
		Preempted: "preempted", Evicted: "evicted", Disrupted: "disrupted", Paused: "paused", Shrunk: "shrunk",
		NodesFailed: "nodes-failed", NodesDrained: "nodes-drained", NodesCordoned: "nodes-cordoned",
		NodesReturned: "nodes-returned",
		Suspended:     "suspended", Resumed: "resumed", Extended: "extended",
	}
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is an event of a job, of an initial unit, or of nodes.
type Event struct {
	// At is a second, Past the time after it at which the event happens.
	At   int64
	Past time.Duration
	Kind Kind
	// Job is an index into the scene's jobs, -1 for none. Running is one into the initial units, -1 for none.
	Job, Running int
	// Name is that of the job, or of the initial unit.
	Name string
	// Placement is the job's for Started, Joined and Shrunk, and the leased place for Leased. Running members retain
	// their node.
	Placement topology.Placement
	// Reserved is the instant of the lease, for Leased: Forever if it rests on guesses.
	Reserved int64
	// Nodes are those that failed, were drained or returned, or those that were lost, of Paused.
	Nodes []int
}
