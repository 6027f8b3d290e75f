package integration_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// claimingJob is a gang whose nodes claim a device of their own each.
const claimingJob = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: claiming
  namespace: default
  labels: {LABEL: research}
  annotations: {simulator.lockstep.dev/run-time: 10m, lockstep.dev/max-per-node: "1"}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 3
    resourceClaimsPerNode: [{name: device, resourceClaimTemplateName: one-daemon}]
`

// Each node of a job has the devices that the job claims for it, on the machine where they are.
func TestResourceClaim_NodesHaveTheirDevices(t *testing.T) {
	kept(t, resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates"), `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-daemon, namespace: default}
spec: {spec: {devices: {requests: [{name: daemon, exactly: {deviceClassName: compute-domain-daemon.nvidia.com}}]}}}
`)
	vacated(t, "claiming")
	kept(t, trainJobs, strings.ReplaceAll(claimingJob, "LABEL", "team"))
	var pods []corev1.Pod
	testcluster.Within(t, 40*time.Second, "the pods with devices", func() bool {
		pods = podsOf(t.Context(), t, "default", "claiming")
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				return false
			}
		}
		return len(pods) == 3
	})
	for _, pod := range pods {
		if claims := pod.Spec.Containers[0].Resources.Claims; len(claims) != 1 || claims[0].Name != "device" {
			t.Errorf("the container of pod %s has claims %v", pod.Name, claims)
		}
		name := pod.Status.ResourceClaimStatuses[0].ResourceClaimName
		claim, err := shared.Client.ResourceV1().ResourceClaims("default").Get(t.Context(), *name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := claim.Status.Allocation.Devices.Results[0].Pool; got != pod.Spec.NodeName {
			t.Errorf("pod %s is on %s, and its device on %s", pod.Name, pod.Spec.NodeName, got)
		}
	}
}

// Kueue would count none of the devices that a job claims itself.
func TestResourceClaim_QueuedJobNeedsRuntime(t *testing.T) {
	answer := tryCreate(t, strings.ReplaceAll(claimingJob, "LABEL", "kueue.x-k8s.io/queue-name"))
	if answer.code != http.StatusForbidden ||
		!strings.Contains(answer.text, "put the claims into the pods of a runtime") {
		t.Errorf("%d %s, want a refusal with a hint", answer.code, answer.text)
	}
}
