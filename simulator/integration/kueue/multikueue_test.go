package kueue_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// dispatched is a queue of sixteen GPUs, alike on both clusters; CHECKS are those of its ClusterQueue.
const dispatched = `apiVersion: v1
kind: Namespace
metadata: {name: dispatched}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: dispatched}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: dispatched-high}
value: 1000
description: Preempts what names no class.
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: dispatched}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
CHECKS  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: dispatched, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: dispatched, namespace: dispatched}
spec: {clusterQueue: dispatched}
`

// multiKueue is the manager's configuration of the worker.
const multiKueue = `apiVersion: v1
kind: Secret
metadata: {name: worker, namespace: kueue-system}
data: {kubeconfig: %s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: worker}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: worker}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: worker}
spec: {clusters: [worker]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: multikueue}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: worker}
`

func dispatchedJob(name, labels, runTime string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: dispatched
  labels: {kueue.x-k8s.io/queue-name: dispatched%s}
  annotations: {lockstep.dev/required-topology: nvidia.com/gpu.clique}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
  runtimePatches:
  - manager: platform.example.com/run-time
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template: {spec: {template: {metadata: {annotations: {simulator.lockstep.dev/run-time: %s}}}}}
`, name, labels, runTime)
}

// MultiKueue sends TrainJobs of a manager cluster to the shared cluster, its worker. Lockstep of the manager leaves
// them alone, Lockstep of the worker places them as gangs, and their status is copied back. Jobs that the manager
// deletes or preempts are deleted from the worker.
func TestMultiKueue_WorkersLockstepPlacesTheManagersJobs(t *testing.T) {
	manager := startManager(t)
	apply(t, strings.Replace(dispatched, "CHECKS", "", 1))
	h, remote := recordOn(t, manager.Dynamic, "dispatched"), record(t, "dispatched")

	applyOn(t, manager, dispatchedJob("short", "", "6s"))
	_, at := remote.next(t, 0, "short", "on the worker: admitted", state.admitted)
	expectRunning(t, "dispatched", "short", 4)
	expectOneClique(t, "short")
	expectUntouched(t, manager, "short")
	done, _ := h.next(t, 0, "short", "on the manager: complete", state.complete)
	logStatus(t, done)
	testcluster.Within(t, 30*time.Second, "the end of the worker's copy", func() bool { return isGone(t, "short") })
	t.Log("the worker has neither the job nor its pods any more")

	applyOn(t, manager, dispatchedJob("deleted", "", "10m"))
	expectRunning(t, "dispatched", "deleted", 4)
	running, _ := h.next(t, 0, "deleted", "on the manager: it is active", func(s state) bool { return s.active() > 0 })
	logStatus(t, running)
	err := manager.Dynamic.Resource(trainJobs).
		Namespace("dispatched").
		Delete(t.Context(), "deleted", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Within(
		t,
		60*time.Second,
		"the end of the deleted job on the worker",
		func() bool { return isGone(t, "deleted") },
	)
	t.Log("deleted on the manager: the worker has neither the job nor its pods")

	applyOn(t, manager, dispatchedJob("low", "", "10m"))
	expectRunning(t, "dispatched", "low", 4)
	applyOn(t, manager, dispatchedJob("high", ", kueue.x-k8s.io/priority-class: dispatched-high", "5s"))
	testcluster.Within(
		t,
		60*time.Second,
		"the end of the preempted job on the worker",
		func() bool { return isGone(t, "low") },
	)
	t.Log("preempted on the manager: the worker has neither the job nor its pods")
	_, at = remote.next(t, at, "high", "on the worker: admitted", state.admitted)
	_, _ = h.next(t, 0, "high", "on the manager: complete", state.complete)
	_, _ = remote.next(t, at, "low", "on the worker: admitted again", state.admitted)
	expectRunning(t, "dispatched", "low", 4)
	expectUntouched(t, manager, "low")
	err = manager.Dynamic.Resource(trainJobs).Namespace("dispatched").Delete(t.Context(), "low", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Within(
		t,
		60*time.Second,
		"the end of the last job on the worker",
		func() bool { return isGone(t, "low") },
	)
}

// startManager starts a second cluster, without nodes, that sends jobs to the shared one.
func startManager(t *testing.T) *cluster.Cluster {
	t.Helper()
	manager, err := cluster.Start(t.Context(), cluster.Options{
		Dir: filepath.Join(t.TempDir(), "manager"), Mode: probe.Mode(*mode), Kueue: true,
		Report: func(line string) { t.Log("manager: " + line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Stop(context.WithoutCancel(t.Context())) })
	access, err := os.ReadFile(shared.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	applyOn(t, manager, fmt.Sprintf(multiKueue, base64.StdEncoding.EncodeToString(access)))
	applyOn(
		t,
		manager,
		strings.Replace(
			dispatched,
			"CHECKS",
			"  admissionChecksStrategy: {admissionChecks: [{name: multikueue}]}\n",
			1,
		),
	)
	testcluster.Within(t, 30*time.Second, "the manager's queue", func() bool {
		queue, err := manager.Dynamic.Resource(queues).Get(t.Context(), "dispatched", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(queue.Object, "status", "conditions")
		return len(conditions) > 0 && conditions[0].(map[string]any)["status"] == "True"
	})
	return manager
}

// expectUntouched fails the test if Lockstep of the manager has made anything of a job, or the job is not MultiKueue's.
func expectUntouched(t *testing.T, manager *cluster.Cluster, name string) {
	t.Helper()
	job, err := manager.Dynamic.Resource(trainJobs).Namespace("dispatched").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managedBy, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
	copied, err := shared.Dynamic.Resource(trainJobs).
		Namespace("dispatched").
		Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remotely, _, _ := unstructured.NestedString(copied.Object, "spec", "managedBy")
	made, err := manager.Dynamic.Resource(jobSets).Namespace("dispatched").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := manager.Client.SchedulingV1beta1().PodGroups("dispatched").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf(
		"%s: managedBy %q on the manager, %q on the worker; the manager has %d JobSets and %d PodGroups",
		name,
		managedBy,
		remotely,
		len(made.Items),
		len(groups.Items),
	)
	if managedBy != "kueue.x-k8s.io/multikueue" || remotely == managedBy || len(made.Items)+len(groups.Items) > 0 {
		t.Error("want MultiKueue's on the manager, the controller's on the worker, and nothing made by the manager")
	}
}

// expectOneClique fails the test unless the pods of a job are one gang in one rack of the worker.
func expectOneClique(t *testing.T, job string) {
	t.Helper()
	racks, gangs, nodes := map[string]bool{}, map[string]bool{}, []string{}
	for _, pod := range podsOf(t, "dispatched", job) {
		rack, _, _ := strings.Cut(pod.Spec.NodeName, "-tray-")
		racks[rack], gangs[gangapi.GroupOf(pod.ObjectMeta, pod.Spec)] = true, true
		nodes = append(nodes, pod.Spec.NodeName)
	}
	t.Logf("the worker's Lockstep placed %s on %v", job, nodes)
	if len(racks) != 1 || len(gangs) != 1 || gangs[""] {
		t.Errorf("%s is in racks %v and gangs %v, want one of each", job, racks, gangs)
	}
}

// isGone reports whether the worker has neither a job nor its pods.
func isGone(t *testing.T, name string) bool {
	t.Helper()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace("dispatched").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil && len(podsOf(t, "dispatched", name)) == 0
}

// logStatus writes the state of a job as the manager sees it.
func logStatus(t *testing.T, s state) {
	t.Helper()
	status, _, _ := unstructured.NestedMap(s.object, "status")
	t.Logf(
		"the manager's status of %s: jobsStatus %v, conditions %v, scheduling %v",
		s.name,
		status["jobsStatus"],
		status["conditions"],
		status["scheduling"],
	)
}
