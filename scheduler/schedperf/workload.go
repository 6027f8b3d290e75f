// Package schedperf runs workloads of scheduler_perf, Kubernetes' own benchmark of the scheduler, with the profile that
// kube-scheduler has by itself and with Lockstep's, in turn, and compares them.
//
// Nothing of scheduler_perf is copied: its configurations are read from the module at run time and its code is linked
// into the test binary of package measure, which runs one workload and exits. So every run has a heap, an API server
// and an etcd of its own.
package schedperf

// Profile says which scheduler a workload was run with.
type Profile string

const (
	// Native is kube-scheduler as the workload asks for it.
	Native Profile = "native"
	// Lockstep is kube-scheduler with Lockstep's plugins, profile and gates.
	Lockstep Profile = "lockstep"
)

// Workload is one workload of scheduler_perf.
type Workload struct {
	// Dir is the folder of its configuration, below that of scheduler_perf.
	Dir string
	// Case and Name are the names of the test case and the workload in that configuration.
	Case, Name string
	// Params replace parameters of the same names, Derived is then the name of the resulting workload.
	Params  map[string]int
	Derived string
	// Measured are the parameters whose product is the number of pods that are measured.
	Measured []string
	// Pods is set if attempts are made for one pod at a time; else those for pod groups are measured.
	Pods bool
	// Allocator is the allocator of devices that upstream's own run of the workload is limited to; "" is no limit.
	Allocator string
	// Nodes is the number of nodes of a workload without gangs, 0 for others.
	Nodes int
	// Count is the number of measured pods of a workload without gangs, 0 for others.
	Count int
}

// String is test case/workload.
func (w Workload) String() string {
	if w.Derived != "" {
		return w.Case + "/" + w.Derived
	}
	return w.Case + "/" + w.Name
}

// Gangs returns the workloads with gangs. The first is the ceiling: pods without gangs on so few nodes that the API
// server does most of the work. It has as many pods as the gangs after it; a node has room for 40 of them.
func Gangs() []Workload {
	gangs := []string{"initPodGroups", "podsPerGroup"}
	return []Workload{
		{
			Dir:      "misc",
			Case:     "SchedulingBasic",
			Name:     "5000Nodes_10000Pods",
			Measured: []string{"measurePods"},
			Pods:     true,
			Derived:  "120Nodes_3000Pods",
			Params:   map[string]int{"initNodes": 120, "measurePods": 3000},
		},
		{
			Dir: "podgroup/gangscheduling", Case: "GangScheduling", Name: "5000Nodes_1000Gangs_3000Pods",
			Measured: gangs,
		},
		{
			Dir: "podgroup/gangscheduling", Case: "GangScheduling", Name: "5000Nodes_3Gangs_3000Pods_1000PerGroup",
			Measured: gangs,
		},
		{
			Dir: "podgroup/tas", Case: "TopologyAwareScheduling", Name: "5000Nodes_750Gangs_3000Pods",
			Measured: gangs,
		},
		{
			Dir: "podgroup/tas", Case: "TopologyAwareScheduling", Name: "5000Nodes_3Gangs_3000Pods_1000PerGroup",
			Measured: gangs,
		},
		{
			Dir: "dra/workloadresourceclaims", Case: "SharedPodGroupResourceClaim", Name: "100podgroups_5000pods",
			Measured: []string{"measurePods"}, Allocator: "incubating",
		},
		{
			Dir:      "workload_preemption",
			Case:     "GangPreemptionBasic",
			Name:     "100Nodes_10PreemptorGangs_10Pods_Evicting_1000InitPods",
			Measured: []string{"preemptorPodGroups", "podsPerGroup"},
		},
		{
			// Ordinary pods must not starve behind a gang that cannot be placed. At upstream's size the native
			// scheduler has not tried that gang after five minutes: each new member costs the queue a walk over all
			// others.
			Dir: "starvation", Case: "StarvationPodGroup", Name: "10000Nodes_10000Cloggers_Podgroup",
			Params:  map[string]int{"initNodes": 1000, "cloggerPods": 1000},
			Derived: "1000Nodes_1000Cloggers_Podgroup", Measured: []string{"starvationProne"}, Pods: true,
		},
	}
}
