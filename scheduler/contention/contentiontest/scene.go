// Package contentiontest runs scenes of the queue: a fleet, the jobs that arrive and their events. A scene is a value
// that any driver can play; Player plays it on contention.Machine alone, in virtual time, and checks the invariants
// after each round.
//
// Scenes are written as scripts (see Script). Time is given as hours and minutes of a day, durations as Go writes them.
package contentiontest

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Clique is the level of the fleet's domains.
const Clique = "clique"

// Scene is a fleet with its jobs and events. Instants are seconds.
type Scene struct {
	// Cliques is the number of equally large domains, Nodes the number of nodes of each, GPUs and CPUs those of each
	// node.
	Cliques, Nodes, GPUs, CPUs int
	Jobs                       []Job
	Events                     []Event
}

// Job is a gang that arrives, or that runs when the scene begins.
type Job struct {
	Name    string
	Arrives int64
	Members int
	GPUs    int
	CPUs    int
	Min     int
	// Elastic members beyond Min may be evicted alone, and wait behind all others.
	Elastic  bool
	Require  string
	Priority int32
	// Runs is the run time; contention.None if it does not end by itself.
	Runs int64
	// Says is the run time in seconds that is known of it before, with this certainty; 0 if none is.
	Says      int64
	Certainty contention.Certainty
	// Preemptible and NeverPreempts are those of contention.Entity.
	Preemptible, NeverPreempts bool
	// On are the nodes, by number, where it runs already since Arrives; nil if it arrives.
	On []int
	// Grace is the time in seconds that it needs to leave when it is evicted.
	Grace int64
	// Saves is the time between two checkpoints in seconds, 0 for none.
	Saves int64
	// Sweep is the set of trials to which it belongs, Limit the number of them that may run; "" and 0 for none.
	Sweep string
	Limit int
	// Daemon pods do not wait: they start on their nodes whatever is leased, and stay there whatever happens to the
	// nodes.
	Daemon bool
	// Pinned are the nodes of a daemon's pods.
	Pinned []int
}

// demand returns the resources of a member.
func (j Job) demand() topology.Capacity { return topology.Capacity{int64(j.GPUs), int64(j.CPUs)} }

// EventKind names the kind of an event.
type EventKind string

// The events of nodes and jobs.
const (
	// Fail makes nodes unusable and ends the units there; Return makes them usable.
	Fail   EventKind = "fail"
	Return EventKind = "return"
	// Cordon makes nodes unusable; the units there stay.
	Cordon EventKind = "cordon"
	// Suspend takes a waiting job out of the queue, Resume puts it back as new, Restore as it was.
	Suspend EventKind = "suspend"
	Resume  EventKind = "resume"
	Restore EventKind = "restore"
	// Finish ends a running job before its time.
	Finish EventKind = "finish"
	// Extend makes the end of a running job unknown: its deadline was changed after the start.
	Extend EventKind = "extend"
	// Lose takes members from a running gang, Ask makes it ask for all that it lacks.
	Lose EventKind = "lose"
	Ask  EventKind = "ask"
	// Hold leases a place for a running job, for a reason that no entity waits for.
	Hold EventKind = "hold"
	// Revoke ends the lease of a job.
	Revoke EventKind = "revoke"
	// FailOver replaces the machine by a new one, which gets the waiting entities and the old one's State.
	FailOver EventKind = "fail-over"
	// Stall makes a running gang one that starts and whose members make no progress, Progress lets one get further,
	// Bound completes it.
	Stall    EventKind = "stall"
	Progress EventKind = "progress"
	Bound    EventKind = "bound"
)

// Event is something that happens at an instant.
type Event struct {
	At    int64
	Kind  EventKind
	Job   string
	Nodes []int
	// Reason is that of a Hold.
	Reason contention.Reason
	// Used is the number of seconds for which the members of a Hold had their places; contention.None for a Hold
	// without limit.
	Used int64
}

// ledger returns the empty fleet.
func (s Scene) ledger() (topology.Ledger, error) {
	var nodes []topology.Node
	var free []topology.Capacity
	for c := range s.Cliques {
		for range s.Nodes {
			nodes = append(nodes, topology.Node{
				Name: NodeName(len(nodes)), Labels: map[string]string{Clique: fmt.Sprintf("c%d", c+1)},
			})
			free = append(free, topology.Capacity{int64(s.GPUs), int64(s.CPUs)})
		}
	}
	tree, err := topology.NewTree([]topology.Level{{Name: Clique, Key: Clique}}, nodes)
	if err != nil {
		return topology.Ledger{}, fmt.Errorf("building the fleet: %w", err)
	}
	return topology.Ledger{Tree: tree, Free: free, Total: slices.Clone(free)}, nil
}

// NodeName returns the name of a node by its number; the first is n1.
func NodeName(node int) string { return fmt.Sprintf("n%03d", node+1) }

// Clock prints an instant as hours, minutes and seconds; after the first day also the days.
func Clock(at int64) string {
	if at == contention.None {
		return "never"
	}
	const day = 24 * 60 * 60
	text := time.Unix(at%day, 0).UTC().Format("15:04:05")
	if at >= day {
		return fmt.Sprintf("%dd+%s", at/day, text)
	}
	return text
}
