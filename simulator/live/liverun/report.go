package liverun

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
	"github.com/lockstep-project/lockstep/topology"
)

// Report reports the state of each job at the given moment, and the domain of each rank in each topology level that the
// fleet's labels describe.
func Report(
	machines fleet.Fleet, jobs []summary.JobObservation, ledger *summary.Ledger, at time.Time,
) summary.Report {
	nodes := make([]topology.Node, len(machines.Nodes))
	for i := range machines.Nodes {
		nodes[i] = topology.Node{Name: machines.Nodes[i].Name, Labels: machines.Nodes[i].Labels}
	}
	return summary.Summarize(summary.Observation{
		Fleet: machines.Name, At: at, Levels: topology.DetectLevels(nodes), Nodes: machines.Nodes, Jobs: jobs,
	}, ledger)
}
