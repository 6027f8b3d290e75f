package schedperf

import (
	"fmt"
	"maps"
	"slices"
)

// ordinary is a row for pods without gangs: one workload of scheduler_perf and its size.
type ordinary struct {
	dir, testCase, workload string
	// nodes is the number of nodes.
	nodes int
	// pods is the number of measured pods.
	pods int
	// params replace upstream's parameters; nil replaces none.
	params map[string]int
}

// rows lists the workloads without gangs. Upstream's smallest workloads end within three seconds here, and
// scheduler_perf looks only once a second whether the last pod is bound, so params raise their measured pods. They
// lower those of the largest workloads, which are sized for upstream's machines. Workloads that set
// SchedulerAsyncAPICalls have it on, as Lockstep has.
func rows() []ordinary {
	type params = map[string]int
	return []ordinary{
		{"misc", "SchedulingBasic", "500Nodes", 500, 5000, params{"measurePods": 5000}},
		{"misc", "SchedulingBasic", "5000Nodes_10000Pods", 5000, 3000, params{"measurePods": 3000}},
		{"misc", "SchedulingWithMixedChurn", "1000Nodes", 1000, 3000, params{"measurePods": 3000}},
		{"misc", "SchedulingWithMixedChurn", "5000Nodes", 5000, 2000, nil},
		{
			"misc", "SchedulingWithExtendedResource", "5000pods_5000nodes_DRAExtendedResourceEnabled", 5000, 1000,
			params{"measurePods": 1000},
		},

		{"affinity", "SchedulingPreferredPodAffinity", "500Nodes", 500, 3000, params{"measurePods": 3000}},
		{"affinity", "SchedulingPreferredPodAffinity", "5000Nodes", 5000, 1000, nil},
		{"affinity", "SchedulingPodAntiAffinity", "5000Nodes_2000Pods", 5000, 2000, nil},
		{"affinity", "SchedulingNodeAffinity", "500Nodes", 500, 5000, params{"measurePods": 5000}},
		{"affinity", "SchedulingNodeAffinity", "5000Nodes", 5000, 2000, params{"measurePods": 2000}},

		{"topology_spreading", "TopologySpreading", "500Nodes", 500, 3000, params{"measurePods": 3000}},
		{"topology_spreading", "TopologySpreading", "5000Nodes", 5000, 2000, nil},
		{"topology_spreading", "PreferredTopologySpreading", "500Nodes", 500, 3000, params{"measurePods": 3000}},
		{"topology_spreading", "PreferredTopologySpreading", "5000Nodes", 5000, 2000, nil},
		{"topology_spreading", "DefaultTopologySpreading", "500Nodes", 500, 3000, params{"measurePods": 3000}},

		{"volumes", "SchedulingSecrets", "500Nodes", 500, 5000, params{"measurePods": 5000}},
		{"volumes", "SchedulingSecrets", "5000Nodes_10000Pods", 5000, 2000, params{"measurePods": 2000}},
		{"volumes", "SchedulingCSIPVs", "500Nodes", 500, 1000, nil},
		{"volumes", "SchedulingCSIPVs", "5000Nodes", 5000, 1000, params{"initPods": 1000}},

		{"dra", "SchedulingWithResourceClaimTemplate", "5000pods_500nodes", 500, 1000, params{"measurePods": 1000}},
		{
			"dra", "SchedulingWithResourceClaimTemplate", "5000pods_500nodes", 5000, 500,
			params{"nodesWithDRA": 5000, "measurePods": 500},
		},
		{"dra", "SchedulingWithResourceClaim", "5000pods_500nodes", 500, 2500, nil},

		{
			"default_preemption", "PreemptionBasic", "1000Nodes_AsyncAPICallsEnabled", 500, 500,
			params{"initNodes": 500, "initPods": 2000, "measurePods": 500},
		},
		{
			"default_preemption", "PreemptionBasic", "1000Nodes_AsyncAPICallsEnabled", 5000, 500,
			params{"initNodes": 5000, "initPods": 20000, "measurePods": 500},
		},
		{"default_preemption", "Unschedulable", "500Nodes/10Init/1kPods", 500, 3000, params{"measurePods": 3000}},
		{"default_preemption", "Unschedulable", "5kNodes/100Init/1kPods", 5000, 2000, params{"measurePods": 2000}},
	}
}

// Ordinary returns the workloads without gangs.
func Ordinary() []Workload {
	all := rows()
	workloads := make([]Workload, len(all))
	for i, row := range all {
		workloads[i] = Workload{
			Dir: row.dir, Case: row.testCase, Name: row.workload, Params: row.params,
			Measured: []string{"measurePods"}, Pods: true, Nodes: row.nodes, Count: row.pods,
		}
		if row.params != nil {
			workloads[i].Derived = fmt.Sprintf("%dNodes_%dPods", row.nodes, row.pods)
		}
		if row.dir == "dra" {
			workloads[i].Allocator = "incubating" // upstream's benchmark is limited to it
		}
	}
	return workloads
}

// quickNodes is the number of nodes of the quick rows.
const quickNodes = 500

// Rows returns the workloads of a set: gangs, ordinary, quick (ordinary on 500 nodes) or all.
func Rows(set string) ([]Workload, error) {
	sets := map[string]func() []Workload{
		"gangs":    Gangs,
		"ordinary": Ordinary,
		"quick": func() []Workload {
			return slices.DeleteFunc(Ordinary(), func(w Workload) bool { return w.Nodes != quickNodes })
		},
		"all": func() []Workload { return append(Gangs(), Ordinary()...) },
	}
	workloads, ok := sets[set]
	if !ok {
		return nil, fmt.Errorf("no set of rows is called %q; choose one of %v", set, slices.Sorted(maps.Keys(sets)))
	}
	return workloads(), nil
}
