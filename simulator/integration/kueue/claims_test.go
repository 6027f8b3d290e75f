package kueue_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// cards is a namespace with a queue for eight devices of a class, and a runtime whose pods claim four each.
const cards = `apiVersion: v1
kind: Namespace
metadata: {name: cards}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: card.example.com}
spec: {selectors: [{cel: {expression: device.driver == "card.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four-cards, namespace: cards}
spec: {spec: {devices: {requests: [{name: cards, exactly: {deviceClassName: card.example.com, count: 4}}]}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: cards}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cards}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [example.com/cards]
    flavors: [{name: cards, resources: [{name: example.com/cards, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: cards, namespace: cards}
spec: {clusterQueue: cards}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: cards, namespace: cards, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: none, resources: {claims: [{name: cards}]}}]
                resourceClaims: [{name: cards, resourceClaimTemplateName: four-cards}]
`

func cardsOf(node string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: card.example.com-%[1]s}
spec:
  driver: card.example.com
  nodeName: %[1]s
  pool: {name: card.example.com-%[1]s, generation: 1, resourceSliceCount: 1}
  devices: [{name: card-0}, {name: card-1}, {name: card-2}, {name: card-3}]
`, node)
}

func cardsJob(name, after string) string {
	return fmt.Sprintf(`---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: cards
  labels: {kueue.x-k8s.io/queue-name: cards}
  annotations: {simulator.lockstep.dev/run-time: 8s, simulator.lockstep.dev/submit-after: %s}
spec:
  runtimeRef: {name: cards, kind: TrainingRuntime}
  trainer: {numNodes: 2}
`, name, after)
}

// Kueue counts the devices of claims that are in the pods of a runtime, by its deviceClassMappings: it counts the
// devices that lockstep-scheduler allocates, and a second job waits for quota though there are devices.
func TestDeviceQuota_ClaimsOfTheRuntimeAreCounted(t *testing.T) {
	mapCards(t)
	for tray := range 4 {
		apply(t, cardsOf(fmt.Sprintf("rack-4-tray-%02d", tray+1)))
	}
	h := record(t, "cards")
	done := play(t, write(t, cards+cardsJob("first", "100ms")+cardsJob("second", "3s")))
	_, at := h.next(t, 0, "first", "admitted", state.admitted)
	expectRunning(t, "cards", "first", 2)
	_, _ = h.next(t, 0, "second", "submitted", state.suspended)
	expectCards(t, "8")
	if pods := podsOf(t, "cards", "second"); len(pods) > 0 {
		t.Errorf("the second job has pods, and the quota is used up")
	}
	_, end := h.next(t, at, "first", "complete", state.complete)
	_, _ = h.next(t, end, "second", "admitted with the first one's quota", state.admitted)
	h.never(t, 0, end, "second", "admitted", state.admitted)
	expectRunning(t, "cards", "second", 2)
	expectCards(t, "8")
	for name, job := range <-done {
		if job.Outcome != summary.Complete || len(job.Ranks) != 2 {
			t.Errorf("%s: %+v, want 2 ranks that completed", name, job)
		}
	}
}

// Kueue does not know resourceClaimsPerNode: a queued job with it would use devices and no quota, so it is refused,
// with the alternative.
func TestDeviceQuota_ClaimsOfTheJobAreRefused(t *testing.T) {
	mapCards(t)
	apply(t, cards)
	job := fitted(t, "torch-distributed", "nodes")
	job.SetNamespace("cards")
	job.SetLabels(map[string]string{queueLabel: "cards"})
	job.Object["spec"].(map[string]any)["trainer"].(map[string]any)["resourceClaimsPerNode"] = []any{
		map[string]any{"name": "cards", "resourceClaimTemplateName": "four-cards"},
	}
	_, err := shared.Dynamic.Resource(trainJobs).Namespace("cards").Create(t.Context(), job, metav1.CreateOptions{})
	t.Logf("refused: %v", err)
	if !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "put the claims into the pods of a runtime, or ask for the extended resource") {
		t.Errorf("want a refusal that names the runtime as the place")
	}
}

// mapCards has Kueue count the class of cards, for one test.
func mapCards(t *testing.T) {
	t.Helper()
	restartKueue(t, map[string]any{"resources": map[string]any{"deviceClassMappings": []any{
		map[string]any{"name": "example.com/cards", "deviceClassNames": []any{"card.example.com"}},
	}}})
}

// expectCards waits until Kueue counts as many devices as are allocated.
func expectCards(t *testing.T, want string) {
	t.Helper()
	var counted usage
	allocated := 0
	testcluster.Within(t, 20*time.Second, want+" devices that are counted and allocated", func() bool {
		counted, allocated = quotaUsed(t, "cards"), allocatedCards(t)
		return counted["cards example.com/cards"] == want && strconv.Itoa(allocated) == want
	})
	t.Logf("Kueue counts %v; %d devices are allocated", counted, allocated)
}

// allocatedCards counts the devices of the claims of pods that run.
func allocatedCards(t *testing.T) int {
	t.Helper()
	claims, err := shared.Client.ResourceV1().ResourceClaims("cards").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	running := map[string]bool{}
	for _, job := range []string{"first", "second"} {
		for _, pod := range podsOf(t, "cards", job) {
			running[pod.Name] = pod.Status.Phase == corev1.PodRunning
		}
	}
	count := 0
	for _, claim := range claims.Items {
		owners := claim.OwnerReferences
		if claim.Status.Allocation != nil && len(owners) == 1 && running[owners[0].Name] {
			count += len(claim.Status.Allocation.Devices.Results)
		}
	}
	return count
}
