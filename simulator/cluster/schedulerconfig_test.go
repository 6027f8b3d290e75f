package cluster_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	manifests "github.com/lockstep-project/lockstep/manifests/scheduler"
	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// The scheduler of an embedded cluster has the shipped profile: limits, election, plugins and all. Only the kubeconfig is the run's own.
func TestSchedulerConfig_IsTheShippedOne(t *testing.T) {
	content, err := cluster.SchedulerConfig(manifests.Config(), "/run/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	var shipped, used map[string]any
	for text, into := range map[string]*map[string]any{string(manifests.Config()): &shipped, string(content): &used} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	connection, ok := used["clientConnection"].(map[string]any)
	if !ok || connection["kubeconfig"] != "/run/kubeconfig" {
		t.Fatalf("the connection is %v", used["clientConnection"])
	}
	delete(connection, "kubeconfig")
	if !reflect.DeepEqual(shipped, used) {
		t.Errorf("an embedded cluster's scheduler runs with\n%v\nwant what is shipped,\n%v", used, shipped)
	}
}
