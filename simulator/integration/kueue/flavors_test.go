package kueue_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// domainLabel is the label of the rack of a node of the fleet.
const domainLabel = "accelerator.topograph.run/domain"

// marketTaint bars pods without a flavor's toleration from the nodes of that flavor.
const marketTaint = "example.com/market"

const sdkManager = "trainer.kubeflow.org/kubeflow-sdk"

// twoFlavors is a queue of two flavors of one gang each, on tainted nodes of two racks.
const twoFlavors = `apiVersion: v1
kind: Namespace
metadata: {name: markets}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: reserved}
spec:
  nodeLabels: {accelerator.topograph.run/domain: rack-1}
  tolerations: [{key: example.com/market, operator: Equal, value: reserved, effect: NoSchedule}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec:
  nodeLabels: {accelerator.topograph.run/domain: rack-2}
  tolerations: [{key: example.com/market, operator: Equal, value: spot, effect: NoSchedule}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: markets}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  flavorFungibility: {whenCanPreempt: MayStopSearch}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu, pods]
    flavors:
    - name: reserved
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: memory, nominalQuota: 100Gi}
      - {name: nvidia.com/gpu, nominalQuota: 16}
      - {name: pods, nominalQuota: 4}
    - name: spot
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: memory, nominalQuota: 100Gi}
      - {name: nvidia.com/gpu, nominalQuota: 16}
      - {name: pods, nominalQuota: 4}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: markets, namespace: markets}
spec: {clusterQueue: markets}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: markets-high}
value: 1000
description: Preempts what names no class.
`

// roamer is a job with a patch of its owner's and one of the SDK's. Both select nodes and tolerate, as Kueue's patch
// will.
const roamer = `---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: roamer
  namespace: markets
  labels: {kueue.x-k8s.io/queue-name: markets}
  annotations: {simulator.lockstep.dev/run-time: 25s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 4
    resourcesPerNode: {requests: {cpu: 1500m, memory: 2Gi}, limits: {nvidia.com/gpu: 4}}
  runtimePatches:
  - manager: platform.example.com/vision-team
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template:
              spec:
                template:
                  metadata: {labels: {platform.example.com/team: vision}}
                  spec:
                    tolerations: [{key: platform.example.com/preemptible, operator: Exists}]
                    nodeSelector: {kubernetes.io/arch: arm64}
  - manager: trainer.kubeflow.org/kubeflow-sdk
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template:
              spec:
                template:
                  metadata: {annotations: {sdk.example.com/run: "7"}}
                  spec:
                    nodeSelector: {nvidia.com/gpu.product: NVIDIA-GB200}
`

const ownerOfReserved = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: tenant
  namespace: markets
  labels: {kueue.x-k8s.io/queue-name: markets, kueue.x-k8s.io/priority-class: markets-high}
  annotations: {simulator.lockstep.dev/run-time: 8s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    resourcesPerNode: {requests: {cpu: 20, memory: 1Gi}, limits: {nvidia.com/gpu: 4}}
`

// A job that Kueue preempts in one flavor is admitted in another. Its pods have the second flavor's node selector and
// tolerations beside the patches of its owner and the SDK, and nothing of the first flavor's. Kueue counts the pods'
// requests at each step.
func TestKueuePatch_PreemptedJobMovesToAnotherFlavor(t *testing.T) {
	taintRack(t, "rack-1", "reserved")
	taintRack(t, "rack-2", "spot")
	covered := []string{"cpu", "memory", "nvidia.com/gpu", "pods"}
	exact := func(when string, want usage) {
		t.Helper()
		expectExact(t, when, "markets", "markets", covered, marketOf, want)
	}
	whole := usage{"cpu": "6", "memory": "8589934592", "nvidia.com/gpu": "16", "pods": "4"}
	small := usage{"cpu": "40", "memory": "2147483648", "nvidia.com/gpu": "8", "pods": "2"}

	h := record(t, "markets")
	low := play(t, write(t, twoFlavors+roamer))
	first, at := h.next(t, 0, "roamer", "admitted", state.admitted)
	show(t, first)
	exact("admitted in flavor reserved", in("reserved", whole))
	expectFlavor(t, "roamer", "reserved", "rack-1")

	high := play(t, write(t, ownerOfReserved))
	_, at = h.next(t, at, "roamer", "preempted: suspended, and nothing of it runs", state.quiet)
	_, at = h.next(t, at, "roamer", "its admission is taken back", state.withdrawn)
	second, at := h.next(t, at, "roamer", "admitted again", state.admitted)
	show(t, second)
	exact("both run", merged(in("reserved", small), in("spot", whole)))
	expectFlavor(t, "roamer", "spot", "rack-2")
	for _, manager := range []string{teamsManager, sdkManager, "simulator.lockstep.dev/up"} {
		before, there := first.patch(manager)
		after, _ := second.patch(manager)
		if !there || fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("the patch of %s is %v, and was %v", manager, after, before)
		}
	}
	if text := fmt.Sprint(
		second.patch(kueueManager),
	); strings.Contains(text, "rack-1") ||
		strings.Contains(text, "reserved") {
		t.Errorf("Kueue's patch still has something of the first flavor: %v", text)
	}
	_, _ = h.next(t, at, "roamer", "complete", state.complete)
	if job := (<-low)["roamer"]; job.Outcome != summary.Complete || len(job.Ranks) != 4 {
		t.Errorf("%+v, want 4 ranks that completed", job)
	}
	if job := (<-high)["tenant"]; job.Outcome != summary.Complete || len(job.Ranks) != 2 {
		t.Errorf("%+v, want 2 ranks that completed", job)
	}
	exact("both ended", usage{})
}

// in prefixes the resources of a usage with a flavor.
func in(flavor string, resources usage) usage {
	prefixed := usage{}
	for name, quantity := range resources {
		prefixed[flavor+" "+name] = quantity
	}
	return prefixed
}

func merged(parts ...usage) usage {
	all := usage{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// marketOf names the flavor of a node of the fleet.
func marketOf(node string) string {
	switch rack, _, _ := strings.Cut(node, "-tray-"); rack {
	case "rack-1":
		return "reserved"
	case "rack-2":
		return "spot"
	default:
		return node
	}
}

// expectFlavor fails the test unless all pods of a job are one gang on nodes of a rack, select and tolerate that flavor
// only, and have the patches of the job's owner and the SDK.
func expectFlavor(t *testing.T, job, flavor, rack string) {
	t.Helper()
	gangs := map[string]bool{}
	for _, pod := range podsOf(t, "markets", job) {
		gangs[gangapi.GroupOf(pod.ObjectMeta, pod.Spec)] = true
		want := map[string]string{
			domainLabel: rack, "kubernetes.io/arch": "arm64", "nvidia.com/gpu.product": "NVIDIA-GB200",
		}
		if fmt.Sprint(pod.Spec.NodeSelector) != fmt.Sprint(want) {
			t.Errorf("%s selects %v, want %v", pod.Name, pod.Spec.NodeSelector, want)
		}
		var markets []string
		for _, toleration := range pod.Spec.Tolerations {
			if toleration.Key == marketTaint {
				markets = append(markets, toleration.Value)
			}
		}
		if !slices.Equal(markets, []string{flavor}) {
			t.Errorf("%s tolerates %v, want %s alone", pod.Name, markets, flavor)
		}
		owners := func(t corev1.Toleration) bool { return t.Key == "platform.example.com/preemptible" }
		if !slices.ContainsFunc(pod.Spec.Tolerations, owners) || pod.Labels["platform.example.com/team"] != "vision" ||
			pod.Annotations["sdk.example.com/run"] != "7" {
			t.Errorf(
				"%s lacks a patch of its owner's or the SDK's: %v %v %v",
				pod.Name,
				pod.Labels,
				pod.Annotations,
				pod.Spec.Tolerations,
			)
		}
		t.Logf("%s on %s selects %v, tolerates %v", pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector, markets)
	}
	if len(gangs) != 1 || gangs[""] {
		t.Errorf("the pods of %s are in gangs %v, want one", job, gangs)
	}
}

// taintRack taints the nodes of a rack until the test ends.
func taintRack(t *testing.T, rack, market string) {
	t.Helper()
	set := func(ctx context.Context, patch string) {
		nodes, err := shared.Client.CoreV1().
			Nodes().
			List(ctx, metav1.ListOptions{LabelSelector: domainLabel + "=" + rack})
		if err != nil || len(nodes.Items) == 0 {
			t.Fatalf("%d nodes of %s: %v", len(nodes.Items), rack, err)
		}
		for _, node := range nodes.Items {
			_, err := shared.Client.CoreV1().
				Nodes().
				Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	set(
		t.Context(),
		fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"value":%q,"effect":"NoSchedule"}]}}`, marketTaint, market),
	)
	t.Cleanup(func() { set(context.WithoutCancel(t.Context()), `{"spec":{"taints":null}}`) })
}
