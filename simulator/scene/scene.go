package scene

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/simulator/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// Scene is a cluster, what runs on it, and what comes. Nobody who plays it changes it.
type Scene struct {
	// Fleet, Trace and Source name the inputs, for people; Synthetic says that the workload was made.
	Fleet, Trace, Source string
	Synthetic            bool
	Options              Options
	// Begin is the instant that durations are counted from.
	Begin time.Time
	// Nodes are complete API objects by their number in the tree. Accelerators are in their capacity.
	Nodes []*corev1.Node
	// Closed says of each node that nothing may start there, from the beginning on.
	Closed []bool
	// Ledger is what is free at the beginning. Capacities have an entry for each of Resources.
	Ledger    topology.Ledger
	Resources []corev1.ResourceName
	// Accelerator is the entry that counts accelerators.
	Accelerator int
	// Devices says of each node that its accelerators are devices of DRA drivers.
	Devices []bool
	// Running is what runs at the beginning; the ledger's Free no longer holds what it takes.
	Running []Running
	// Jobs are those that come, by (Submit, Waited, ID): of one instant those first that have waited longest.
	Jobs   []Job
	Events []Event
	// Notes are what people have to know about how this was made; one line each.
	Notes []string
}

// Options are how a scene is made.
type Options struct {
	// Seed decides what is drawn.
	Seed uint64
	// Load is how many times as fast submissions and events come; 0 is 1, as which it stands in a scene.
	Load float64
	// Estimates of 1 or more gives each job without an estimate one: its duration times a number that is drawn evenly between
	// 1 and this. 0 leaves such jobs without.
	Estimates float64
	// Unsaid is how long a gang of a snapshot runs that waits and of which nobody says it; 0 is an hour.
	Unsaid time.Duration
}

// Job is a gang that comes.
type Job struct {
	ID, Tenant string
	// Submit is when it comes, Duration how long it runs, Estimate how long its owner says that it does at most, 0 for nothing
	// said: whole seconds.
	Submit, Duration, Estimate time.Duration
	// Waited is how long it had waited already when it came, whole seconds: above 0 only of what a snapshot has waiting. Its place in
	// the queue is that of its priority and of Submit less this.
	Waited time.Duration
	// Gang is what is asked of the core, with its rules; members are in rank order. Needed is how many of them have to
	// start together.
	Gang   topology.Gang
	Needed int
	// Accelerators is how many all members take.
	Accelerators int64
	Priority     int32
	Preemptible  bool
	EndState     trace.EndState
	// Group and Pods are complete API objects of what a snapshot has waiting, Pods in rank order and without nodes; Group is nil
	// for a pod in no gang. Both are nil for a job of a trace.
	Group *schedulingv1beta1.PodGroup
	Pods  []*corev1.Pod
}

// Running is what runs at the beginning.
type Running struct {
	Name  string
	Holds []topology.Held
	// Ends is when it ends, Expected when those who decide think so, both since the beginning: Forever for never.
	Ends, Expected time.Duration
	Accelerators   int64
	// Group is nil for a pod in no gang. Pods are complete API objects with nodes. What they claim of accelerators they ask for as
	// Resources[Accelerator], and claims they have none.
	Group *schedulingv1beta1.PodGroup
	Pods  []*corev1.Pod
}

// Forever is the end of what does not end by itself.
const Forever = time.Duration(1<<63 - 1)

// Event is something that happens to nodes.
type Event struct {
	// At is since the beginning, in whole seconds.
	At   time.Duration
	Kind trace.Kind
	// Nodes are their numbers, ascending.
	Nodes []int
}

// GPUs is how many accelerators the fleet has, closed nodes included.
func (s *Scene) GPUs() int64 {
	var sum int64
	for _, total := range s.Ledger.Total {
		sum += total[s.Accelerator]
	}
	return sum
}
