package app_test

import (
	"maps"
	"testing"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/scheduler/app"
)

// profilesOf returns the profiles of a configuration, as kube-scheduler reads it.
func profilesOf(t *testing.T, content []byte) []schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles
}

// The chart's aliases are profiles of the configuration, and one profile of the process, with all its arguments.
func TestMerged_Aliases(t *testing.T) {
	release := render.Default().With("scheduler.aliases", []any{"scheduler-plugins-scheduler", "crew"}).
		With("scheduler.pluginArgs", map[string]any{"GangPlacement": map[string]any{"accelerators": []any{"example.com/npu"}}})
	made, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range made.All() {
		if object.GetKind() != "ConfigMap" || object.GetName() != "lockstep-scheduler" {
			continue
		}
		data := object.Object["data"].(map[string]any)
		profiles := profilesOf(t, []byte(data["profile.yaml"].(string)))
		kept, aliases := app.Merged(profiles)
		want := map[string]string{"scheduler-plugins-scheduler": "lockstep-scheduler", "crew": "lockstep-scheduler"}
		if len(profiles) != 3 || len(kept) != 1 || kept[0].SchedulerName != "lockstep-scheduler" ||
			!maps.Equal(aliases, want) {
			t.Errorf("of %d profiles %d are kept, with aliases %v", len(profiles), len(kept), aliases)
		}
		return
	}
	t.Fatal("the chart has no configuration of the scheduler")
}

// A profile with another plugin or argument stays one of its own.
func TestMerged_KeepsOthers(t *testing.T) {
	var content map[string]any
	if err := yaml.Unmarshal(chart.Profile(), &content); err != nil {
		t.Fatal(err)
	}
	other := map[string]any{"schedulerName": "other", "percentageOfNodesToScore": 50}
	content["profiles"] = append(content["profiles"].([]any), other)
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	kept, aliases := app.Merged(profilesOf(t, text))
	if len(kept) != 2 || len(aliases) != 0 {
		t.Errorf("%d are kept, with aliases %v", len(kept), aliases)
	}
}
