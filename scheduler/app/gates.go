package app

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"

	"github.com/lockstep-project/lockstep/manifests/probe"
)

// apply makes the process fit the cluster: its gates, one log line, one metric.
func apply(offer probe.Offer) error {
	if err := SetGates(utilfeature.DefaultMutableFeatureGate, offer); err != nil {
		return err
	}
	klog.Background().Info("Asked the cluster what it offers", "mode", offer.Mode, "missing", offer.Missing())
	return export(offer)
}

// SetGates sets the scheduler's gates by the features that the cluster offers and that the plugins rely on.
// KubeSchedulerConfiguration cannot carry gates. A gate is set before those that depend on it.
func SetGates(gates featuregate.MutableFeatureGate, offer probe.Offer) error {
	for _, step := range []map[featuregate.Feature]bool{
		{features.GenericWorkload: true},
		{
			// The plan needs placements whether or not the API server stores the native constraint.
			features.TopologyAwareWorkloadScheduling: true,
			features.DRAWorkloadResourceClaims:       offer.Claims(),
			features.CompositePodGroup:               false,
			// Where the API server does not serve the rules, their informer would never be filled.
			features.DRADeviceTaintRules: offer.DeviceTaintRules,
			// Members are pinned: signatures would be computed for nothing.
			features.OpportunisticBatching:  false,
			features.SchedulerAsyncAPICalls: true,
			// Every member waits at Permit for a moment: announcing its node there would double the writes of a gang.
			features.NominatedNodeNameForExpectation: false,
			// GangQueue opens a gang in constant time per member through such a hint.
			features.SchedulerPreQueueingHints: true,
		},
	} {
		named := make(map[string]bool, len(step))
		for gate, on := range step {
			named[string(gate)] = on
		}
		if err := gates.SetFromMap(named); err != nil {
			return fmt.Errorf("setting feature gates: %w", err)
		}
	}
	return nil
}

// export exports the mode as a metric of the scheduler.
func export(offer probe.Offer) error {
	mode := metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name:           "lockstep_cluster_mode",
		Help:           "What the cluster offers to gangs (full, groups or resources); always 1.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"mode"})
	if err := legacyregistry.Register(mode); err != nil {
		return fmt.Errorf("registering the metric of the cluster's mode: %w", err)
	}
	mode.WithLabelValues(string(offer.Mode)).Set(1)
	return nil
}
