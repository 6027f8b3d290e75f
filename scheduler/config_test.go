package scheduler_test

import (
	"slices"
	"testing"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// GangPlacement sets, for each cycle, the part of the nodes that is searched: the framework has to offer the profile's
// own number, and the profile has to have one.
func TestShippedConfiguration_SaysHowManyNodesAreSearched(t *testing.T) {
	var _ interface{ PercentageOfNodesToScore() *int32 } = framework.Framework(nil)
	if of := schedulertest.Config(t).Profiles[0].PercentageOfNodesToScore; of == nil || *of != 100 {
		t.Errorf("the profile says %v, want 100", of)
	}
}

func TestShippedConfiguration_EnablesOurPlugins(t *testing.T) {
	t.Parallel()
	config := schedulertest.Config(t)
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		t.Fatal(err)
	}
	enabled := schedulertest.NewCluster(t).Plugins()
	for point, got := range map[string]schedulerconfig.PluginSet{
		"queueSort": enabled.QueueSort, "placementGenerate": enabled.PlacementGenerate,
		"placementScore": enabled.PlacementScore, "permit": enabled.Permit,
	} {
		if len(got.Enabled) != 1 || got.Enabled[0].Name != map[string]string{
			"queueSort": "GangQueue", "placementGenerate": "GangPlacement",
			"placementScore": "GangPlacement", "permit": "GangPermit",
		}[point] {
			t.Errorf("plugins at %s are %v", point, got.Enabled)
		}
	}
	if first := enabled.Bind.Enabled[0]; first.Name != "GangPermit" {
		t.Errorf("the first plugin at bind is %s: it would bind members of gangs without patience", first.Name)
	}
	for point, got := range map[string]schedulerconfig.PluginSet{"preFilter": enabled.PreFilter, "filter": enabled.Filter} {
		if len(got.Enabled) == 0 || got.Enabled[0].Name != "GangPlacement" {
			t.Errorf("the first plugin at %s is not GangPlacement: %v", point, got.Enabled)
		}
	}
	if last := enabled.PreBind.Enabled[len(enabled.PreBind.Enabled)-1]; last.Name != "GangPermit" {
		t.Errorf("the last plugin at preBind is %s: members would wait before all of them are ready", last.Name)
	}
	has := func(set schedulerconfig.PluginSet, name string) bool {
		return slices.ContainsFunc(set.Enabled, func(p schedulerconfig.Plugin) bool { return p.Name == name })
	}
	if has(enabled.PreEnqueue, "GangScheduling") || !has(enabled.PreEnqueue, "GangQueue") {
		t.Errorf("plugins at preEnqueue are %v", enabled.PreEnqueue.Enabled)
	}
	for _, name := range []string{"InterPodAffinity", "PodTopologySpread", "NodeResourcesFit", "LockstepDynamicResources"} {
		if !has(enabled.Filter, name) {
			t.Errorf("%s does not filter", name)
		}
	}
}
