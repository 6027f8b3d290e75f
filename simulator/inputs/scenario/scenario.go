package scenario

import (
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// Scenario is a cluster, its running units, and the jobs that arrive. Engines and watchers must not change it.
type Scenario struct {
	// Fleet, Trace and Source name the inputs in reports.
	Fleet, Trace, Source string
	// Synthetic reports a generated workload.
	Synthetic bool
	Options   Options
	// Begin is the instant from which durations are counted.
	Begin time.Time
	// Closed is indexed by node: true for a node that takes no new gangs, from the beginning on.
	Closed []bool
	// Ledger holds the free resources at the beginning. Capacities have an entry for each of Resources.
	Ledger topology.Ledger
	// Resources names the entries of a Capacity, such as "cpu" (in millicores) and "nvidia.com/gpu".
	Resources []string
	// Accelerator is the index of accelerators in Resources.
	Accelerator int
	// Devices is indexed by node: true if the node's accelerators are devices of DRA drivers.
	Devices []bool
	// Running lists the running units at the beginning. The ledger's Free excludes the capacity that they hold.
	Running []Running
	// Jobs are sorted by (Submit, Waited, ID). Of two jobs with one Submit the one that waited longer is first.
	Jobs []Job
	// Events are sorted by At.
	Events []Event
	// Notes are warnings for users about how the inputs were read, one line each.
	Notes []string
	// Costs computes the cost in time of placements and starts; nil if they cost nothing.
	Costs *cost.Model
	// Objects are the API objects behind the scenario, for engines that play real ones; nil if there are none. Their
	// type is of package importer (importer.ObjectsOf reads them), so that this package has no Kubernetes in it.
	Objects any
}

// Options configure the making of a scenario.
type Options struct {
	// Seed determines all random draws.
	Seed uint64
	// Load divides the instants of submissions and events: 2 submits twice as fast. 0 stands for 1, and a scenario has 1.
	Load float64
	// Estimates of 1 or more gives each job without an estimate one: its duration times a number that is drawn evenly
	// between 1 and this. 0 leaves such jobs without.
	Estimates float64
	// Silent is the share, from 0 to 1, of the jobs with an estimate whose owners state none after all. It is chosen by
	// tenant and seed, so that every scheduler has the same. 0 leaves all estimates.
	Silent float64
	// Wishes gives gangs of a trace topology wishes by published practice, if they have none.
	Wishes bool
	// Elastic is the share, from 0 to 1, of the gangs that may train with a quarter of their members, chosen by seed.
	Elastic float64
	// Exact leaves the submissions of a trace unchanged, instead of rounding them to seconds: units that end in one
	// second then end one by one.
	Exact bool
	// DefaultRunTime is assumed for waiting gangs of a snapshot with no deadline (default 1h).
	DefaultRunTime time.Duration
	// Costs selects the costs in time besides running.
	Costs cost.Settings
}

// Job is a gang that arrives.
type Job struct {
	ID, Tenant string
	// Submit is the time at which the job arrives, since the beginning; in whole seconds but with Options.Exact.
	Submit time.Duration
	// Duration is the run time of the job, in whole seconds.
	Duration time.Duration
	// Estimate is the longest run time that the job's owner expects, in whole seconds; 0 if the owner gives none.
	Estimate time.Duration
	// Waited is the wait of a job of a snapshot before Submit, in whole seconds; 0 for jobs of a trace. The queue
	// orders jobs by priority and by Submit less Waited.
	Waited time.Duration
	// Gang is the topology request, with members in rank order.
	Gang topology.Gang
	// Needed is the number of members that have to start together.
	Needed int
	// Min makes the job elastic: it starts with as many first members as fit, at least Min, and the others wait in its
	// place in the queue and join it while it runs. 0 stands for a job that is not elastic. Engines and policies that
	// ignore Min place Needed.
	Min int
	// Shrinks has an elastic job give members beyond Min to jobs of a higher priority, and to nodes that fail, and take
	// them back behind all that wait. It resumes from its last checkpoint each time, and its work takes longer with
	// fewer members. Policies place all members.
	Shrinks bool
	// Accelerators is the sum over all members.
	Accelerators int64
	Priority     int32
	Preemptible  bool
	// Grace is the time that the job's pods need to leave their nodes when the job is preempted, in whole seconds; 0
	// for at once.
	Grace time.Duration
	// NeverPreempts is set if the job preempts no other. No trace has such a job.
	NeverPreempts bool
	// Bound are the nodes of the pods of a DaemonSet, in rank order: they are created there and never wait, and events
	// of nodes do not end them. nil for all other jobs. No trace has such a job.
	Bound []int
	// Share is the part of an iteration that is communication on the best placement, in thousandths; 0 for none.
	Share int64
	// Saves is the time of training between two checkpoints, in whole seconds; 0 for none. A job that ends before its
	// time resumes from the last one.
	Saves time.Duration
	// Replaces has members that lose their node replaced while the others stay on theirs (lockstep.dev/on-disruption:
	// replace), by engines and schedulers that can.
	Replaces bool
	EndState trace.EndState
	// Sweep is the set of trials to which the job belongs. Other schedulers than Lockstep ignore it.
	Sweep Sweep
}

// Sweep is a set of trials with a limit on the running ones. The zero value is none.
type Sweep struct {
	// Name is namespace/name.
	Name string
	// Limit bounds its gangs that run at a time; 0 is without limit.
	Limit int
}

// Running is a gang or a single pod that runs at the beginning.
type Running struct {
	Name  string
	Holds []topology.Held
	// Ends is the time of its end, since the beginning; Forever for never.
	Ends time.Duration
	// Ran is the time that it has run at the beginning, in whole seconds; 0 if that is not known.
	Ran time.Duration
	// Expected is the end that the scheduler expects, since the beginning; Forever if no end is declared.
	Expected time.Duration
	// Reported is set if a trainer may have reported the expected end; otherwise a deadline enforces it.
	Reported     bool
	Accelerators int64
	// Sweep is the set of trials to which it belongs.
	Sweep Sweep
	// IsGang is false for a single pod, and for a service whatever it consists of. Without a declared end, a gang frees
	// its nodes at an unknown time; the others stay.
	IsGang bool
}

// Forever is the end of a run that does not end by itself.
const Forever = time.Duration(1<<63 - 1)

// Extend makes the end of a unit that runs from the beginning unknown: its deadline was changed after the start. No
// trace has such an event, and engines report none.
const Extend trace.Kind = "extend"

// Cordon lets nothing start on nodes until they return; running units there stay. No trace has such an event.
const Cordon trace.Kind = "cordon"

// These happen to a job, and to one that waits only. No trace has such events.
const (
	// Suspend deletes the pods of a job; its PodGroup stays. Withdraw deletes the PodGroup, too.
	Suspend  trace.Kind = "suspend"
	Withdraw trace.Kind = "withdraw"
	// Restore creates the pods of a job again that was suspended or withdrawn, in its place in the queue. Resume puts
	// it into the queue as one that has just arrived.
	Restore trace.Kind = "restore"
	Resume  trace.Kind = "resume"
)

// Event is a failure, a drain, a Cordon or a return of nodes, an Extend, or a change of a waiting job.
type Event struct {
	// At is since the beginning, in whole seconds.
	At   time.Duration
	Kind trace.Kind
	// Nodes are numbers in the tree, in ascending order; none for an Extend, and for changes of a job.
	Nodes []int
	// Running is the index of the unit that an Extend is about.
	Running int
	// Job is the index of the job that a Suspend, Withdraw, Restore or Resume is about.
	Job int
}

// GPUs returns the fleet's number of accelerators, closed nodes included.
func (s *Scenario) GPUs() int64 {
	var sum int64
	for _, total := range s.Ledger.Total {
		sum += total[s.Accelerator]
	}
	return sum
}

// Namespace is that of the jobs of a trace.
const Namespace = "default"

// PodName returns the name of the pod of a rank.
func PodName(job string, rank int) string { return job + "-" + strconv.Itoa(rank) }
