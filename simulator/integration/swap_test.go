package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// drain closes the nodes of these pods, and evicts them. It returns the function that opens the nodes again.
func drain(t *testing.T, pods ...corev1.Pod) (reopen func()) {
	t.Helper()
	set := func(value string) {
		for _, pod := range pods {
			_, err := shared.Client.CoreV1().Nodes().Patch(t.Context(), pod.Spec.NodeName, types.MergePatchType,
				[]byte(`{"spec":{"unschedulable":`+value+`}}`), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
	}
	set("true")
	evict(t, pods)
	return func() { set("null") }
}

// homeOf is the one clique that all the pods are in.
func homeOf(t *testing.T, pods []corev1.Pod) string {
	t.Helper()
	cliques := map[string]bool{}
	clique := ""
	for _, pod := range pods {
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		clique = node.Labels["nvidia.com/gpu.clique"]
		cliques[clique] = true
	}
	if len(cliques) != 1 {
		t.Fatalf("the gang is in the cliques %v", cliques)
	}
	return clique
}

// A gang of 16 in a clique of 18, with two spare nodes. Two of its nodes are drained: both members are recreated, with
// their ranks, on the spares. A third is drained: there is no room for that one, so the gang moves to another clique,
// and its job neither fails nor counts a restart.
func TestOnDisruption_ReplacesUntilGangMoves(t *testing.T) {
	const ranks = 16
	namespace, name := namespaceOf(t), "swapped"
	submit(t, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: swapped
  namespace: NAMESPACE
  annotations:
    lockstep.dev/on-disruption: replace
    lockstep.dev/required-topology: nvidia.com/gpu.clique
    simulator.lockstep.dev/run-time: 10m
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`, ranks))
	before := newRunners(t, namespace, name, ranks, nil)
	home := homeOf(t, before)
	lost := []corev1.Pod{before[3], before[9]}
	defer drain(t, lost...)()
	swapped := newRunners(t, namespace, name, ranks, lost)
	if at := homeOf(t, swapped); at != home {
		t.Errorf("the lost members came back in %s, the others are in %s", at, home)
	}
	for rank, pod := range swapped {
		if kept := pod.UID == before[rank].UID; rankOf(pod) != rank || kept == (rank == 3 || rank == 9) {
			t.Errorf("rank %d is %s on %s", rank, pod.Name, pod.Spec.NodeName)
		}
	}
	defer drain(t, swapped[5])()
	moved := newRunners(t, namespace, name, ranks, swapped)
	if at := homeOf(t, moved); at == home {
		t.Errorf("the gang is still in %s", at)
	}
	if restarts := number(t, namespace, name, "restarts"); restarts != 0 {
		t.Errorf("the JobSet was started again %d times", restarts)
	}
	shared.Succeed(t, moved)
	testcluster.Within(t, 90*time.Second, "the job's completion", func() bool {
		return slices.Equal(conditionsOf(t.Context(), t, namespace, name), []string{"Complete"})
	})
}
