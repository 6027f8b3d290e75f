package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

var trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}

func TestFrameworks_EachFindsItsPeers(t *testing.T) {
	job := func(name, runtime string) string {
		return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: NAMESPACE, annotations: {simulator.lockstep.dev/run-time: 1s}}
spec:
  runtimeRef: {name: %s}
  trainer: {numNodes: 2, command: [train], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`, name, runtime)
	}
	jobs := play(t, 30*time.Second, strings.Join([]string{
		job("torch", "torch-distributed"), job("jax", "jax-distributed"), job("xgboost", "xgboost-distributed"),
		job("plain", "plain"),
	}, "---\n"))
	for name, want := range map[string]map[string]string{
		"torch": {
			"PET_NNODES": "2", "PET_NPROC_PER_NODE": "auto", "PET_MASTER_ADDR": "torch-node-0-0.torch", "PET_MASTER_PORT": "29500",
		},
		"jax":     {"JAX_NUM_PROCESSES": "2", "JAX_COORDINATOR_ADDRESS": "jax-node-0-0.jax:29500"},
		"xgboost": {"DMLC_TRACKER_URI": "xgboost-node-0-0.xgboost", "DMLC_TRACKER_PORT": "29500", "DMLC_NUM_WORKER": "8"},
		"plain":   {},
	} {
		if jobs[name].Outcome != summary.Complete {
			t.Errorf("%s: %s (%s)", name, jobs[name].Outcome, jobs[name].Reason)
		}
		pods := podsOf(t.Context(), t, namespaceOf(t), name)
		if len(pods) != 2 {
			t.Errorf("%s: %d pods, want 2", name, len(pods))
			continue
		}
		got := map[string]string{}
		for _, variable := range pods[0].Spec.Containers[0].Env {
			got[variable.Name] = variable.Value
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %s=%q, want %q", name, key, got[key], value)
			}
		}
	}
}

func TestStatus_FollowsTheJobSet(t *testing.T) {
	play(t, 30*time.Second, gang("followed", 2, "1s"))
	job, err := shared.Dynamic.Resource(trainJobs).
		Namespace(namespaceOf(t)).
		Get(t.Context(), "followed", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	if len(conditions) != 1 || conditions[0].(map[string]any)["type"] != "Complete" {
		t.Errorf("conditions %v, want only Complete", conditions)
	}
	statuses, _, _ := unstructured.NestedSlice(job.Object, "status", "jobsStatus")
	if len(statuses) != 1 || statuses[0].(map[string]any)["succeeded"] != int64(1) {
		t.Errorf("jobsStatus %v, want one replicated job that succeeded", statuses)
	}
}

// An error that only appears when the job's objects are created is reported in the job's status, not only in a log:
// this name is short enough for a TrainJob, and too long for its pods.
func TestStatus_SaysWhyJobCannotBeMade(t *testing.T) {
	name := strings.Repeat("long-", 11) + "name"
	job := unplaced(t, name, gang(name, 2, "1s"), func(now summary.Job) bool { return now.Reason != "" })
	if job.Outcome != summary.Unplaced || !strings.Contains(job.Reason, "spec.replicatedJobs[0].name: Invalid value") {
		t.Errorf("%s: %s, want Unplaced for its name", job.Outcome, job.Reason)
	}
}

func TestCRDs_ServeBothVersions(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v2alpha1"} {
		list, err := shared.Client.Discovery().ServerResourcesForGroupVersion("trainer.kubeflow.org/" + version)
		if err != nil {
			t.Fatal(err)
		}
		served := map[string]bool{}
		for _, resource := range list.APIResources {
			served[resource.Kind] = true
		}
		for _, kind := range []string{"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"} {
			if !served[kind] {
				t.Errorf("%s does not serve %s", version, kind)
			}
		}
	}
}

func TestSubmit_NamesLineOfRefusedObject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	content := strings.ReplaceAll(gang("fine", 1, "1s")+"---\n"+gang("wrong", 1, "1s"), "NAMESPACE", "default")
	content = strings.Replace(content, "numNodes: 1", "numNodes: -1", 2) // a file alone does not show it
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	jobs, err := workload.Load([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	_, err = liverun.Submit(t.Context(), shared.Cluster, jobs, catalog, clock.RealClock{})
	if !badinput.Is(err) || !strings.HasPrefix(err.Error(), file+":1: the API server refuses TrainJob") ||
		!strings.Contains(err.Error(), "numNodes") {
		t.Errorf("a number that the webhook refuses: %v", err)
	}
}

// Our binaries run under the roles of manifests/, not as admin.
func TestRoles_AreNotAdmin(t *testing.T) {
	for _, account := range []string{"lockstep-controller", "lockstep-scheduler"} {
		for _, attributes := range []authorizationv1.ResourceAttributes{
			{Verb: "list", Resource: "secrets", Namespace: corev1.NamespaceDefault},
			{Verb: "watch", Resource: "secrets", Namespace: corev1.NamespaceDefault},
			{Verb: "update", Resource: "secrets", Namespace: corev1.NamespaceDefault},
			{Verb: "deletecollection", Resource: "secrets", Namespace: corev1.NamespaceDefault},
			{Verb: "delete", Resource: "nodes"},
			{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
			{Verb: "*", Group: "*", Resource: "*"},
		} {
			review, err := shared.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
				&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User:   "system:serviceaccount:lockstep-system:" + account,
					Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: &attributes,
				}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed {
				t.Errorf("%s may %s %s", account, attributes.Verb, attributes.Resource)
			}
		}
	}
}

// A job that fetches something first has volume claims, which JobSet does not let change: it must be able to wait in a
// queue.
func TestSuspend_JobWithVolumeClaimsResumes(t *testing.T) {
	kept(t, trainJobs, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: queued, namespace: default}
spec:
  suspend: true
  runtimeRef: {name: torchtune-qwen2.5-1.5b}
  trainer: {command: [tune, run], resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
  runtimePatches:
  - manager: example.com/test
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
      {name: dataset-initializer, template: {spec: {template: {metadata: {
        annotations: {simulator.lockstep.dev/run-time: 1s}, labels: {a: b}}}}}},
      {name: model-initializer, template: {spec: {template: {metadata: {
        annotations: {simulator.lockstep.dev/run-time: 1s}}}}}}]}}}
`)
	jobSets := shared.Dynamic.Resource(jobsetv1alpha2.GroupVersion.WithResource("jobsets")).Namespace("default")
	eventually(t, "its JobSet", func() bool {
		_, err := jobSets.Get(t.Context(), "queued", metav1.GetOptions{})
		return err == nil
	})
	patch := func(text string) {
		t.Helper()
		_, err := shared.Dynamic.Resource(trainJobs).Namespace("default").Patch(t.Context(), "queued",
			types.MergePatchType, []byte(text), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(
		`{"spec":{"runtimePatches":[]}}`,
	) // the queue takes back its labels, and a template that has only these loses all
	patch(`{"spec":{"suspend":false}}`)
	testcluster.Within(t, 40*time.Second, "its trainer's pod", func() bool {
		for _, pod := range podsOf(t.Context(), t, "default", "queued") {
			if pod.Labels[jobsetv1alpha2.ReplicatedJobNameKey] == "node" {
				return true
			}
		}
		return false
	})
}
