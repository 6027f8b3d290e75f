package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

const clique = "nvidia.com/gpu.clique"

var trainingRuntimes = schema.GroupVersionResource{
	Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainingruntimes",
}

// sharingRuntime is a runtime whose nodes are a gang in one clique that shares a claim; a job on it starts again when a
// pod fails.
const sharingRuntime = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: sharing, namespace: default}
spec:
  mlPolicy: {numNodes: 4, torch: {}}
  scheduling:
    schedulingConstraints: {topology: [{key: nvidia.com/gpu.clique}]}
    resourceClaims: [{name: fabric, resourceClaimTemplateName: one-clique}]
  template:
    spec:
      failurePolicy: {maxRestarts: 3}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              metadata: {annotations: {simulator.lockstep.dev/run-time: RUNTIME}}
              spec:
                restartPolicy: Never
                containers:
                - {name: node, image: torch, resources: {limits: {nvidia.com/gpu: 4}, claims: [{name: fabric}]}}
                resourceClaims: [{name: fabric, resourceClaimTemplateName: one-clique}]
`

// fabric gives every clique one device, which a gang takes as a whole.
func fabric(t *testing.T) {
	t.Helper()
	resource := func(name string) schema.GroupVersionResource {
		return resourcev1.SchemeGroupVersion.WithResource(name)
	}
	kept(t, resource("deviceclasses"), `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fabric.example.com}
spec: {selectors: [{cel: {expression: device.driver == "fabric.example.com"}}]}
`)
	kept(t, resource("resourceclaimtemplates"), `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-clique, namespace: default}
spec: {spec: {devices: {requests: [{name: clique, exactly: {deviceClassName: fabric.example.com}}]}}}
`)
	for _, domain := range cliquesOf(t) {
		kept(t, resource("resourceslices"), fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]q}
spec:
  driver: fabric.example.com
  pool: {name: %[1]q, generation: 1, resourceSliceCount: 1}
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.clique, operator: In, values: [%[1]q]}]}]}
  devices: [{name: clique}]
`, domain))
	}
}

// cliquesOf are the names of the fleet's cliques.
func cliquesOf(t *testing.T) []string {
	t.Helper()
	var names []string
	seen := map[string]bool{"": true}
	for _, node := range machines.Nodes {
		if name := node.Labels[clique]; !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// start is one start of the gang: its group, the claim that it shares, and the clique that it is in.
type start struct {
	group, claim types.UID
	clique       string
}

// running waits until all four pods of a job's attempt run in the clique whose device their group has.
func running(t *testing.T, job, attempt string) start {
	t.Helper()
	var now start
	var trouble string
	defer func() {
		if t.Failed() {
			t.Log(trouble)
		}
	}()
	testcluster.Within(t, 40*time.Second, "the gang of "+job, func() bool {
		now, trouble = startOf(t.Context(), t, job, attempt)
		return trouble == ""
	})
	return now
}

// startOf returns the state of a job's gang, or the missing condition for its run.
func startOf(ctx context.Context, t *testing.T, job, attempt string) (now start, missing string) {
	t.Helper()
	group, err := shared.Client.SchedulingV1beta1().PodGroups("default").Get(ctx, job, metav1.GetOptions{})
	if err != nil || !group.DeletionTimestamp.IsZero() {
		return start{}, fmt.Sprintf("the group is not there (%v)", err)
	}
	claim, missing := claimOf(ctx, t, group)
	if missing != "" {
		return start{}, missing
	}
	now = start{group: group.UID, claim: claim.UID, clique: claim.Status.Allocation.Devices.Results[0].Pool}
	pods := podsOf(ctx, t, "default", job)
	for _, pod := range pods {
		which := pod.Labels["jobset.sigs.k8s.io/restart-attempt"]
		if pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() || which != attempt {
			return start{}, fmt.Sprintf(
				"pod %s of attempt %s is %s: %v",
				pod.Name,
				which,
				pod.Status.Phase,
				pod.Status.Conditions,
			)
		}
		if got := cliqueOf(pod.Spec.NodeName); got != now.clique {
			return start{}, fmt.Sprintf("pod %s is in clique %s, the device in %s", pod.Name, got, now.clique)
		}
	}
	if len(pods) != 4 {
		return start{}, fmt.Sprintf("%d pods, want 4", len(pods))
	}
	return now, ""
}

// claimOf returns the claim that the pods of a group share, or the missing part: it must be allocated, and reserved for
// the group, or for each of its pods where they share it by name.
func claimOf(
	ctx context.Context, t *testing.T, group *schedulingv1beta1.PodGroup,
) (claim *resourcev1.ResourceClaim, missing string) {
	t.Helper()
	name, sharers := group.Name+"-fabric", 4
	if offered() != probe.Resources {
		statuses := group.Status.ResourceClaimStatuses
		if len(statuses) != 1 || statuses[0].ResourceClaimName == nil {
			return nil, fmt.Sprintf("the group's claims are %v", statuses)
		}
		name, sharers = *statuses[0].ResourceClaimName, 1
	}
	claim, err := shared.Client.ResourceV1().ResourceClaims("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err.Error()
	}
	reserved := claim.Status.ReservedFor
	if claim.Status.Allocation == nil || len(reserved) != sharers || sharers == 1 && reserved[0].UID != group.UID {
		return nil, fmt.Sprintf("the claim is reserved for %v, want the group, or its pods", reserved)
	}
	return claim, ""
}

func cliqueOf(node string) string {
	for _, machine := range machines.Nodes {
		if machine.Name == node {
			return machine.Labels[clique]
		}
	}
	return ""
}

// goneWithin waits until neither the group nor any claim of the job is there.
func goneWithin(t *testing.T, patience time.Duration, job string) {
	t.Helper()
	testcluster.Within(t, patience, "the end of the group of "+job, func() bool {
		_, err := shared.Client.SchedulingV1beta1().PodGroups("default").Get(t.Context(), job, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && claims(t.Context(), t) == 0
	})
}

// claims returns the number of claims.
func claims(ctx context.Context, t *testing.T) int {
	t.Helper()
	list, err := shared.Client.ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// vacated waits, after the test's later objects are deleted, until a job's machines and devices are free for the next
// test.
func vacated(t *testing.T, job string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return len(podsOf(ctx, t, "default", job)) == 0 && claims(ctx, t) == 0, nil
		})
		if err != nil {
			t.Errorf("the pods or the claim of %s are still there after its deletion", job)
		}
	})
}

func sharingJob(t *testing.T, name, runTime string) {
	t.Helper()
	vacated(t, name)
	kept(t, trainingRuntimes, strings.Replace(sharingRuntime, "RUNTIME", runTime, 1))
	kept(t, trainJobs, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: default}
spec: {runtimeRef: {name: sharing, kind: TrainingRuntime}}
`, name))
}

func suspendJob(t *testing.T, name string, suspend bool) {
	t.Helper()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace("default").Patch(t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// cordon makes the nodes of a clique unschedulable, until the test ends.
func cordon(t *testing.T, domain string) {
	t.Helper()
	patch := func(ctx context.Context, off bool) {
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": off}})
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range machines.Nodes {
			if node.Labels[clique] != domain {
				continue
			}
			_, err = shared.Client.CoreV1().
				Nodes().
				Patch(ctx, node.Name, types.MergePatchType, text, metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
	}
	patch(t.Context(), true)
	t.Cleanup(func() { patch(context.WithoutCancel(t.Context()), false) })
}

// A gang's shared claim lives as long as its group: it is given back on suspension, and made anew on resumption and
// when the whole gang starts again. There, the clique of the first start is no longer to be had: with the former
// allocation, which only that clique can serve, the gang would wait for ever.
func TestSharedClaim_LivesAsLongAsItsGang(t *testing.T) {
	if offered() == probe.Groups {
		t.Skip("without DRAWorkloadResourceClaims the API server drops shared claims")
	}
	fabric(t)
	sharingJob(t, "sharing", "10m")
	first := running(t, "sharing", "0")
	suspendJob(t, "sharing", true)
	goneWithin(t, 20*time.Second, "sharing")
	suspendJob(t, "sharing", false)
	second := running(t, "sharing", "0")
	if second.group == first.group || second.claim == first.claim {
		t.Errorf("the resumed gang has the group or the claim of before: %v, then %v", first, second)
	}

	cordon(t, second.clique)
	fail(t, podsOf(t.Context(), t, "default", "sharing")[0])
	third := running(t, "sharing", "1")
	// A claim that pods share by name is freed with the last of them, and taken again.
	if (third.group == second.group || third.claim == second.claim) != (offered() == probe.Resources) ||
		third.clique == second.clique {
		t.Errorf("the gang that started again is where it was: %v, then %v", second, third)
	}
	job, err := shared.Dynamic.Resource(trainJobs).Namespace("default").Get(t.Context(), "sharing", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, said := job.Object["status"].(map[string]any); said && status["conditions"] != nil {
		for _, condition := range status["conditions"].([]any) {
			if kind := condition.(map[string]any)["type"]; kind != "Suspended" {
				t.Errorf("the job that started again is %v", kind)
			}
		}
	}
}

// fail makes a pod a failed one, as its kubelet would.
func fail(t *testing.T, pod corev1.Pod) {
	t.Helper()
	_, err := shared.Client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// Others wait for the devices of a job that is over; a group without claims would stay for 45 s.
func TestSharedClaim_EndsWithItsJob(t *testing.T) {
	if offered() == probe.Groups {
		t.Skip("without DRAWorkloadResourceClaims the API server drops shared claims")
	}
	fabric(t)
	sharingJob(t, "brief", "10m")
	running(t, "brief", "0")
	shared.Succeed(t, podsOf(t.Context(), t, "default", "brief"))
	if offered() == probe.Resources {
		testcluster.Within(t, 20*time.Second, "the claim's devices are given back", func() bool {
			claim, err := shared.Client.ResourceV1().
				ResourceClaims("default").
				Get(t.Context(), "brief-fabric", metav1.GetOptions{})
			return err == nil && claim.Status.Allocation == nil
		})
		return
	}
	goneWithin(t, 20*time.Second, "brief")
}

// A cluster that drops shared claims is reported, and no pod starts with a claim of its own.
func TestSharedClaim_RefusedWhereDropped(t *testing.T) {
	if offered() != probe.Groups {
		t.Skip("the API server keeps shared claims in this mode")
	}
	kept(t, trainingRuntimes, strings.Replace(sharingRuntime, "RUNTIME", "1s", 1))
	answer := tryCreate(t, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: refused, namespace: default}
spec: {runtimeRef: {name: sharing, kind: TrainingRuntime}}
`)
	if answer.code != http.StatusForbidden || !strings.Contains(answer.text, "DRAWorkloadResourceClaims") {
		t.Errorf("%d %s, want a refusal that names the gate", answer.code, answer.text)
	}
}
