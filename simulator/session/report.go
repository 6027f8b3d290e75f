package session

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/outcome"
	"github.com/lockstep-project/lockstep/topology"
)

// Report says how each job went, looked at in the given moment, and in which domain of each topology level that the
// fleet's labels describe each rank is.
func Report(
	machines fleet.Fleet, jobs []outcome.JobObservation, ledger *outcome.Ledger, at time.Time,
) outcome.Report {
	nodes := make([]topology.Node, len(machines.Nodes))
	for i := range machines.Nodes {
		nodes[i] = topology.Node{Name: machines.Nodes[i].Name, Labels: machines.Nodes[i].Labels}
	}
	var levels []outcome.Level
	for _, level := range topology.DetectLevels(nodes) {
		levels = append(levels, outcome.Level{Name: level.Name, Key: level.Key})
	}
	return outcome.Summarize(outcome.Observation{
		Fleet: machines.Name, At: at, Levels: levels, Nodes: machines.Nodes, Jobs: jobs,
	}, ledger)
}
