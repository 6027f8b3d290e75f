package coexistence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// The owner of a gang that no node holds, neither an existing one nor one that can be added, gets the reason before its
// pods are made, and where no other nodes can be added they are not made. A gang that fits on a node that can be added
// waits for it with its pods.
func TestNodes_GangThatNoNodeHolds(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	controller(ctx, t, "--node-shape=cpu=96,nvidia.com/gpu=16", "--nodes-complete")
	t.Cleanup(func() { controller(ctx, t) })
	makeNamespace(t)
	job := func(name, accelerators string) {
		create(t, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {namespace: NAMESPACE, name: %s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: %s}}}
`, name, accelerators))
	}
	job("never", "32")
	job("later", "16")
	testcluster.Within(t, time.Minute, "pods of later, and an answer to never", func() bool {
		return len(pods(t, "later")) == 2 && standing(t, "never")["phase"] == "Blocked"
	})
	text, err := yaml.Marshal(map[string]any{"status": map[string]any{"scheduling": map[string]any{
		"phase": standing(t, "never")["phase"], "reason": standing(t, "never")["reason"],
	}}})
	if err != nil {
		t.Fatal(err)
	}
	documented(t, map[string]string{"held": string(text)})
	testcluster.Within(t, time.Minute, "an Event", func() bool {
		list, err := shared.Client.CoreV1().
			Events(namespaceOf(t)).
			List(t.Context(), metav1.ListOptions{FieldSelector: "reason=NoNodeFits"})
		return err == nil && len(list.Items) == 1 && list.Items[0].InvolvedObject.Name == "never"
	})
	if made := len(pods(t, "never")); made > 0 {
		t.Errorf("%d pods were made that no node holds", made)
	}
	for _, c := range []struct{ job, accelerators string }{{"later", "16"}, {"never", "32"}} {
		for i := range 2 {
			addNode(t, fmt.Sprintf("for-%s-%d", c.job, i), c.accelerators, map[string]string{})
		}
		testcluster.Within(
			t,
			time.Minute,
			c.job+" runs where nodes for it are",
			func() bool { return running(t, c.job) == 2 },
		)
	}
}

// controller runs lockstep-controller with flags beside its usual ones.
func controller(ctx context.Context, t *testing.T, flags ...string) {
	t.Helper()
	if err := shared.StopController(ctx); err != nil {
		t.Fatal(err)
	}
	if err := shared.StartController(ctx, flags...); err != nil {
		t.Fatal(err)
	}
}

// standing returns status.scheduling of a TrainJob.
func standing(t *testing.T, name string) map[string]any {
	t.Helper()
	jobs := schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	job, err := shared.Dynamic.Resource(jobs).Namespace(namespaceOf(t)).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _, _ := unstructured.NestedMap(job.Object, "status", "scheduling")
	return status
}
