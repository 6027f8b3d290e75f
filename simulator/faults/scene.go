package faults

import (
	"fmt"
	"strings"
	"time"
)

// Scene holds the machines, the jobs, and the faults. All instants are since the beginning.
type Scene struct {
	// Seed determines all delays.
	Seed uint64
	// Racks times PerRack nodes with GPUs each.
	Racks, PerRack, GPUs int
	// Claims is set if devices are claimed (DRA), and not requested as a resource.
	Claims bool
	// Channels is set if racks are NVLink domains, and jobs that have to be in one rack get channels of a
	// ComputeDomain.
	Channels bool
	Jobs     []Job
	Faults   []Fault
}

// Job is a TrainJob.
type Job struct {
	Name string
	// At is the time of its submission.
	At time.Duration
	// Nodes is its number of ranks, which request that many GPUs each; Runs is the time for which they have to run
	// together.
	Nodes, GPUs int
	Runs        time.Duration
	Priority    int
	// Rack requires that all ranks are in one rack, Replace that a lost rank is replaced and the others stay. Native is
	// a Job with a PodGroup of its own, without a TrainJob; GivesUp is one that makes a failed rank never again
	// (backoffLimitPerIndex 0).
	Rack, Replace, Native, GivesUp bool
}

// Kind is a kind of fault.
type Kind string

// The kinds. Those of calls and watches are of a process, and last.
const (
	// Crash ends a rank with an exit code, DeletePod deletes it.
	Crash     Kind = "crash"
	DeletePod Kind = "delete-pod"
	// Suspend suspends a job and resumes it when it is over, DeleteJob deletes it.
	Suspend   Kind = "suspend"
	DeleteJob Kind = "delete-job"
	// Scale gives a native job fewer ranks, and has it grow again when it is over.
	Scale Kind = "scale"
	// LoseNode cuts a node off and brings it back, RemoveNode deletes it and adds it again, Cordon closes it, and
	// CordonAll all of them.
	LoseNode   Kind = "lose-node"
	RemoveNode Kind = "remove-node"
	Cordon     Kind = "cordon"
	CordonAll  Kind = "cordon-all"
	// Kill ends a process; the next one is there when it is over. A scheduler that stands by takes over at once.
	Kill Kind = "kill"
	// Refuse answers calls with 429, Drop loses calls, Forget loses answers, Slow makes calls slow: one of three.
	Refuse Kind = "refuse"
	Drop   Kind = "drop"
	Forget Kind = "forget"
	Slow   Kind = "slow"
	// Cut cuts the watches of a process. Afterwards a watch resumes where it was, or lists, if the history is
	// compacted.
	Cut  Kind = "cut"
	List Kind = "list"
	// Thief is a pod of default-scheduler on a node, for a while.
	Thief Kind = "thief"
	// Skew sets the clock of a process wrong.
	Skew Kind = "skew"
)

// hinders reports whether a fault hinders Lockstep in its work while it lasts. Handling faults of nodes and pods is its
// work.
func (k Kind) hinders() bool {
	switch k {
	case Kill, Refuse, Drop, Forget, Slow, Cut, List, Skew:
		return true
	default:
		return false
	}
}

// Fault is one fault of a scene.
type Fault struct {
	Kind Kind
	// At is its beginning, For its duration; 0 for a fault that is over at once.
	At, For time.Duration
	// Bound has it begin when so many members of the job were bound, counted from the first of all; 0 at At.
	Bound int
	// Process is the owner of the calls, watches or clock: scheduler, controller or jobset.
	Process string
	// Job and Rank are the owner of the pod; Node is a number. With Bound, Job is the one with the counted members.
	// Ranks are those that are left to a job that is scaled.
	Job               string
	Rank, Node, Ranks int
	// GPUs are those of a thief.
	GPUs int
	// Code is an exit code.
	Code int32
}

// String is a line.
func (f Fault) String() string {
	var b strings.Builder
	if fmt.Fprintf(&b, "%s at=%v", f.Kind, f.At); f.Bound > 0 {
		b.Reset()
		fmt.Fprintf(&b, "%s bound=%d of=%s", f.Kind, f.Bound, f.Job)
	}
	if f.For > 0 {
		fmt.Fprintf(&b, " for=%v", f.For)
	}
	switch f.Kind {
	case Crash:
		fmt.Fprintf(&b, " job=%s rank=%d code=%d", f.Job, f.Rank, f.Code)
	case DeletePod:
		fmt.Fprintf(&b, " job=%s rank=%d", f.Job, f.Rank)
	case Suspend, DeleteJob:
		fmt.Fprintf(&b, " job=%s", f.Job)
	case Scale:
		fmt.Fprintf(&b, " job=%s ranks=%d", f.Job, f.Ranks)
	case CordonAll:
	case LoseNode, RemoveNode, Cordon:
		fmt.Fprintf(&b, " node=%d", f.Node)
	case Thief:
		fmt.Fprintf(&b, " node=%d gpus=%d", f.Node, f.GPUs)
	case Kill, Refuse, Drop, Forget, Slow, Cut, List, Skew:
		fmt.Fprintf(&b, " process=%s", f.Process)
	}
	return b.String()
}

// String is a line.
func (j Job) String() string {
	out := fmt.Sprintf("job %s at=%v nodes=%d gpus=%d runs=%v", j.Name, j.At, j.Nodes, j.GPUs, j.Runs)
	if j.Priority != 0 {
		out += fmt.Sprintf(" priority=%d", j.Priority)
	}
	if j.Rack {
		out += " rack"
	}
	if j.Replace {
		out += " replace"
	}
	if j.Native {
		out += " native"
	}
	if j.GivesUp {
		out += " gives-up"
	}
	return out
}

// String has a line for the machines, for each job, and for each fault.
func (s *Scene) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed=%d racks=%d nodes=%d gpus=%d", s.Seed, s.Racks, s.PerRack, s.GPUs)
	if s.Claims {
		b.WriteString(" claims")
	}
	if s.Channels {
		b.WriteString(" channels")
	}
	b.WriteString("\n")
	for _, j := range s.Jobs {
		fmt.Fprintln(&b, j)
	}
	for _, f := range s.Faults {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// nodeName is the name of a node.
func (s *Scene) nodeName(at int) string { return fmt.Sprintf("r%d-n%d", at/s.PerRack, at%s.PerRack) }
