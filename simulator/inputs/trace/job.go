package trace

import (
	"cmp"
	"slices"
	"time"
)

// Trace is a workload: the submissions with their times, and the events of nodes meanwhile.
type Trace struct {
	Name string
	// Source states its origin and its license in a line.
	Source string
	// Synthetic is set if the trace is made, and not a record. Reports have to say so.
	Synthetic bool
	// Jobs are in the order of their submission, those of one instant in that of their IDs.
	Jobs []Job
	// Events are in the order of their instants, those of one instant in that of their source.
	Events []Event
}

// Job is a gang that a user submits.
type Job struct {
	// ID is unique in the trace.
	ID string
	// Tenant is its owner: a queue, a virtual cluster; empty if unknown.
	Tenant string
	// Submit is the time at which it arrives, since the beginning of the trace: 0 to MostTime.
	Submit time.Duration
	// Duration is its run time, from the start of its pods: above 0, at most MostTime. The scheduler does not know it.
	Duration time.Duration
	// Podsets are its pods, by kind; at least one, at most MostPods in all.
	Podsets []Podset
	// MinCount is the number of its pods with which it may run, 1 to all of them; 0 is all.
	MinCount int
	// Priority is Kubernetes': the higher starts first. 0 is the default.
	Priority int32
	// Preemptible is set if jobs of a higher priority may end it.
	Preemptible bool
	// Grace is the time that its pods need to leave their nodes when the job is preempted: 0, for at once, to MostTime.
	Grace time.Duration
	// Required is the level of the topology with one domain that has to hold all pods, Preferred the innermost whose
	// boundaries it minds. Empty is no wish.
	Required, Preferred string
	Segment             Segment
	// Estimate is the owner's upper bound of its run time, 0 for none. It may be wrong.
	Estimate time.Duration
	EndState EndState
	// Sweep names the set of trials of its tenant's to which the job belongs, at most 63 characters; empty for none. Of
	// these, Parallelism may run at a time; 0 is without limit. The lowest number of the sweep's trials counts.
	Sweep       string
	Parallelism int
}

// Podset is a number of equal pods.
type Podset struct {
	// Count is the number of them, at least 1.
	Count int
	// Min makes the pods elastic: at least so many start, as many as fit do, and the others join them while the job
	// runs. 1 to Count; 0 for pods that are not elastic. Only the last podset may be elastic, and only without
	// MinCount: those that join have the last ranks.
	Min int
	// GPUs is the number of whole ones that each requests, 0 to MostGPUs.
	GPUs int
	// CPU is the request of each in thousandths of a core, Memory in bytes; at least 0.
	CPU, Memory int64
}

// Segment is the wish that consecutive pods in groups of Size share one domain of Level. The zero value is no wish.
type Segment struct {
	Size  int
	Level string
}

// EndState is the recorded end of a job. The duration of a canceled job depends on its start there, so report results
// with and without such jobs.
type EndState string

// The end states.
const (
	EndUnknown EndState = ""
	Completed  EndState = "completed"
	Canceled   EndState = "canceled"
	Failed     EndState = "failed"
)

// Event is something that happens to nodes, whatever runs on them.
type Event struct {
	// At is the time, since the beginning of the trace: 0 to MostTime.
	At   time.Duration
	Kind Kind
	// Nodes are their names, at least one.
	Nodes []string
}

// Kind is the kind of a node's event.
type Kind string

// The kinds of events.
const (
	// Fail ends all units there at once, and nothing starts there until the node returns.
	Fail Kind = "fail"
	// Drain lets nothing start there until the node returns; running units have to move. A drained node may still fail.
	Drain Kind = "drain"
	// Return makes a node that failed or was drained as good as new.
	Return Kind = "return"
)

// Bounds beyond which a job is taken for a mistake.
const (
	MostPods = 1_000_000
	MostTime = 100 * 365 * 24 * time.Hour
)

// Pods returns the number of pods of the job.
func (j Job) Pods() int {
	n := 0
	for _, set := range j.Podsets {
		n += set.Count
	}
	return n
}

// GPUs returns the number of GPUs that its pods request together.
func (j Job) GPUs() int {
	n := 0
	for _, set := range j.Podsets {
		n += set.Count * set.GPUs
	}
	return n
}

// GPUHours returns its use of the cluster: its GPUs times its duration.
func (j Job) GPUHours() float64 {
	return float64(j.GPUs()) * j.Duration.Hours()
}

// sorted is the trace with jobs and events in their order.
func (t Trace) sorted() Trace {
	slices.SortFunc(t.Jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
	})
	slices.SortStableFunc(t.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return t
}

// A job's share of a node besides GPUs, where its trace states none: less than any node with GPUs has for each of them.
const (
	milliCPUPerGPU = 8_000
	memoryPerGPU   = 64 << 30
)

// gpusPerNode is the size of the nodes on which the published jobs ran.
const gpusPerNode = 8

// gang is the usual reading of a number of GPUs: one pod if a node has as many, else as many whole nodes as it takes.
// Of the published sizes this rounds up only 12 GPUs, to two nodes.
func gang(gpus int) []Podset {
	perPod := min(gpus, gpusPerNode)
	return []Podset{{
		Count:  (gpus + gpusPerNode - 1) / gpusPerNode,
		GPUs:   perPod,
		CPU:    int64(perPod) * milliCPUPerGPU,
		Memory: int64(perPod) * memoryPerGPU,
	}}
}
