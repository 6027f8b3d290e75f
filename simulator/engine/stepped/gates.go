package stepped

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

// SetGates sets the gates of a process in which schedulers are played. A gate is set before those that depend on it. A
// gate that is as it should be is left alone: others may be reading it.
func SetGates() error {
	for _, step := range []map[featuregate.Feature]bool{
		{features.GenericWorkload: true},
		{
			features.TopologyAwareWorkloadScheduling: true,
			features.CompositePodGroup:               false,
			features.SchedulerPreQueueingHints:       true,
			// These work in goroutines of their own.
			features.SchedulerAsyncAPICalls:   false,
			features.SchedulerAsyncPreemption: false,
			// Signatures of pods, which expire by the machine's clock.
			features.OpportunisticBatching:           false,
			features.NominatedNodeNameForExpectation: false,
		},
	} {
		named := make(map[string]bool, len(step))
		for gate, on := range step {
			if utilfeature.DefaultFeatureGate.Enabled(gate) != on {
				named[string(gate)] = on
			}
		}
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(named); err != nil {
			return fmt.Errorf("setting feature gates: %w", err)
		}
	}
	return nil
}
