package integration_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// A runtime may group its initializers, which start one by one, and its nodes, which are a gang in one domain. Its
// settings are honored also where the native field is dropped.
func TestPodGroup_RuntimeWithSeveral(t *testing.T) {
	submitted := submitFiles(t, written(t, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: grouped, namespace: NAMESPACE, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 8, torch: {}}
  scheduling:
    replicatedJobs:
    - {targetReplicatedJobs: [dataset-initializer], schedulingPolicy: {basic: {}}}
    - targetReplicatedJobs: [node]
      schedulingPolicy: {gang: {}}
      schedulingConstraints: {topology: [{key: nvidia.com/gpu.clique}]}
      disruptionMode: {all: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec:
            template:
              spec:
                containers: [{name: dataset-initializer, image: initializer}]
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: torch, resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job, namespace: NAMESPACE, annotations: {simulator.lockstep.dev/run-time: 10m}}
spec: {runtimeRef: {name: grouped, kind: TrainingRuntime}}
`))
	initializer := newRunners(t, namespaceOf(t), "job", 1, nil)
	shared.Succeed(t, initializer)
	// The group of a gang whose members end asks for fewer.
	nodePods := newRunners(t, namespaceOf(t), "job", 8, initializer)
	if policy := groupOf(t, "job-dataset-initializer").Spec.SchedulingPolicy; policy.Basic == nil {
		t.Errorf("the initializers' policy is %+v, want basic", policy)
	}
	nodes := groupOf(t, "job-node").Spec
	if nodes.SchedulingPolicy.Gang == nil || nodes.SchedulingPolicy.Gang.MinCount != 8 || nodes.DisruptionMode == nil {
		t.Errorf("the nodes' group is %+v, want a gang of 8 that is disrupted as one", nodes)
	}
	for _, pod := range podsOf(t.Context(), t, namespaceOf(t), "job") {
		if group := pod.Spec.SchedulingGroup; group == nil || pod.Spec.SchedulerName != ours {
			t.Errorf("pod %s is in group %v, of scheduler %s", pod.Name, group, pod.Spec.SchedulerName)
		}
	}
	shared.Succeed(t, nodePods)
	inOneClique(t, shared.Watch(t, submitted, testcluster.Patience(10*time.Second))["job"], 8)
}

// A restart of the whole gang retains a group that shares no claims: its new pods are placed whole again, wherever
// there is room.
func TestPodGroup_RestartKeepsOneWithoutClaims(t *testing.T) {
	withoutClaims := strings.NewReplacer(
		"    resourceClaims: [{name: fabric, resourceClaimTemplateName: one-clique}]\n", "",
		"                resourceClaims: [{name: fabric, resourceClaimTemplateName: one-clique}]\n", "",
		", claims: [{name: fabric}]", "", "RUNTIME", "10m")
	vacated(t, "restarted")
	kept(t, trainingRuntimes, withoutClaims.Replace(sharingRuntime))
	kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: restarted, namespace: default}
spec: {runtimeRef: {name: sharing, kind: TrainingRuntime}}
`)
	group := func() types.UID {
		found, err := shared.Client.SchedulingV1beta1().
			PodGroups("default").
			Get(t.Context(), "restarted", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found.UID
	}
	in := func(attempt string) (domain string) {
		eventually(t, "attempt "+attempt+", whole in one clique", func() bool {
			domains := map[string]int{}
			for _, pod := range podsOf(t.Context(), t, "default", "restarted") {
				if pod.Labels["jobset.sigs.k8s.io/restart-attempt"] == attempt &&
					pod.Status.Phase == corev1.PodRunning {
					domain = cliqueOf(pod.Spec.NodeName)
					domains[domain]++
				}
			}
			return len(domains) == 1 && domains[domain] == 4
		})
		return domain
	}
	first, before := in("0"), group()
	cordon(t, first)
	fail(t, podsOf(t.Context(), t, "default", "restarted")[0])
	if second := in("1"); second == first || second == "" {
		t.Errorf("the gang that started again is in clique %q, which is cordoned", second)
	}
	if after := group(); after != before {
		t.Errorf("the group is another: %s, then %s", before, after)
	}
}
