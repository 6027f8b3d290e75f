package direct_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/topology"
)

// fleet is empty nodes of eight GPUs, rack by rack.
func fleet(tb testing.TB, nodes, perRack int) direct.Scene {
	tb.Helper()
	all := make([]topology.Node, nodes)
	free := make([]topology.Capacity, nodes)
	for i := range all {
		all[i] = topology.Node{
			Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{"test/rack": fmt.Sprintf("r%03d", i/perRack)},
		}
		free[i] = topology.Capacity{8}
	}
	tree, err := topology.NewTree([]topology.Level{{Name: "rack", Key: "test/rack", Weight: 100}}, all)
	if err != nil {
		tb.Fatal(err)
	}
	return direct.Scene{Ledger: topology.Ledger{Tree: tree, Free: free, Total: free}}
}

// job is a gang of members with so many GPUs each, which arrives at that instant and runs so long.
func job(name string, members int, gpus, arrives, runs int64) direct.Job {
	g := topology.Gang{
		Name: name, Members: make([]topology.Member, members),
		Shapes: []topology.Shape{{Demand: topology.Capacity{gpus}}},
	}
	for m := range g.Members {
		g.Members[m].Name = fmt.Sprint("worker-", m)
	}
	return direct.Job{
		Name: name, Order: contention.Order{Since: time.Unix(arrives, 0), Name: name}, Gang: g, Needed: members,
		Arrives: arrives, Runs: runs, Accelerators: int64(members) * gpus,
	}
}

// promised sets the longest run time that a job declares.
func promised(j direct.Job, atMost int64) direct.Job {
	j.Promises = atMost
	return j
}

// elastic lets a job start with fewer members.
func elastic(j direct.Job, atLeast int) direct.Job {
	j.Min = atLeast
	return j
}

// important gives a job a priority with which it evicts whatever that loses.
func important(j direct.Job, priority int32) direct.Job {
	j.Order.Priority = contention.Urgent + priority
	return j
}

// eventLog lists the events of a scene, line by line.
type eventLog struct {
	direct.Result
	lines []string
}

func play(tb testing.TB, scene direct.Scene, options direct.Options) eventLog {
	tb.Helper()
	var s eventLog
	result, err := direct.Run(scene, options, func(e direct.Event) { s.lines = append(s.lines, line(e)) })
	if err != nil {
		tb.Fatal(err)
	}
	s.Result = result
	return s
}

func line(e direct.Event) string {
	at := strconv.FormatFloat(float64(e.At)+e.Past.Seconds(), 'f', -1, 64)
	text := fmt.Sprintf("%s %s %s", at, e.Name, e.Kind)
	if e.Kind == direct.Started || e.Kind == direct.Joined || e.Kind == direct.Leased {
		text += fmt.Sprint(" ", e.Placement.Nodes)
	}
	switch {
	case e.Kind != direct.Leased:
	case e.Reserved == direct.Forever:
		text += " by a guess"
	default:
		text += fmt.Sprint(" from ", e.Reserved)
	}
	return text
}

func (s eventLog) String() string { return strings.Join(s.lines, "\n") }
