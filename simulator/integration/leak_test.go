package integration_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

var leaks = flag.Int("leaks", 20, "how many jobs TestCleanup_NothingLeaks lets end")

// The ways in which jobs end, in turn.
var ways = []string{"complete", "fail", "deadline", "delete", "suspend"}

// ending lets jobs end, each in its way, once their pods run.
type ending struct {
	namespace string
	touched   map[string]bool
}

// However a job ends, a minute later nothing that it made is left, and its devices are free. A suspended job retains
// the objects that it needs to resume: the copy of its runtime, its files and keys, and the Service of its JobSet.
func TestCleanup_NothingLeaks(t *testing.T) {
	e := &ending{namespace: namespaceOf(t), touched: map[string]bool{}}
	var texts []string
	for i := range *leaks {
		texts = append(texts, leakingJob(i))
	}
	submit(t, leakingRuntimes+"---\n"+strings.Join(texts, "---\n"))
	patience := 60*time.Second + time.Duration(*leaks)*time.Second
	testcluster.Within(t, patience, "the end of all jobs", func() bool {
		e.push(t)
		return e.over(t) == *leaks
	})
	begin := time.Now()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left: %s", strings.Join(left, ", "))
		}
	}()
	testcluster.Within(t, time.Minute, "the end of all that the jobs had", func() bool {
		left = e.left(t)
		return len(left) == 0
	})
	t.Logf(
		"%d jobs ended in %d ways; %.0f s after the last one there is nothing left",
		*leaks,
		len(ways),
		time.Since(begin).Seconds(),
	)
	whole := strings.ReplaceAll(
		gang("whole-fleet", 72, "1s"),
		"    lockstep.dev/required-topology: nvidia.com/gpu.clique\n",
		"",
	)
	t.Run("free", func(t *testing.T) {
		if job := play(t, 30*time.Second, whole)["whole-fleet"]; job.Outcome != summary.Complete {
			t.Errorf("a job that needs all GPUs is %s (%s): not all devices are free", job.Outcome, job.Reason)
		}
	})
}

// leakingRuntimes fail at the first failed pod.
const leakingRuntimes = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: leak-torch, namespace: NAMESPACE}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              spec:
                containers: [{name: node, image: example.com/torch:1}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: leak-mpi, namespace: NAMESPACE}
spec:
  mlPolicy: {numNodes: 2, mpi: {mpiImplementation: OpenMPI, numProcPerNode: 1, runLauncherAsNode: true}}
  template:
    spec:
      network: {publishNotReadyAddresses: true}
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      replicatedJobs:
      - name: launcher
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              spec:
                containers: [{name: node, image: example.com/mpi:1}]
      - name: node
        template:
          spec:
            backoffLimit: 0
            template:
              spec:
                containers: [{name: node, image: example.com/mpi:1}]
`

func leakingJob(i int) string {
	way, runtime := ways[i%len(ways)], []string{"leak-torch", "leak-mpi"}[i/len(ways)%2]
	runTime, deadline := "10m", ""
	switch way {
	case "complete":
		runTime = "2s"
	case "deadline":
		deadline = "\n  activeDeadlineSeconds: 5"
	}
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s-%d
  namespace: NAMESPACE
  annotations: {simulator.lockstep.dev/run-time: %s, lockstep.dev/mnnvl: %s}
spec:%s
  runtimeRef: {kind: TrainingRuntime, name: %s}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
`, way, i, runTime, []string{"none", "preferred"}[i%2], deadline, runtime)
}

// push ends running jobs.
func (e *ending) push(t *testing.T) {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		job := pod.Labels["jobset.sigs.k8s.io/jobset-name"]
		if pod.Status.Phase != corev1.PodRunning || e.touched[job] {
			continue
		}
		jobs := shared.Dynamic.Resource(trainJobs).Namespace(e.namespace)
		var err error
		switch way, _, _ := strings.Cut(job, "-"); way {
		case "fail":
			exit(t, pod, 1, "")
		case "delete":
			err = jobs.Delete(t.Context(), job, metav1.DeleteOptions{})
		case "suspend":
			_, err = jobs.Patch(
				t.Context(),
				job,
				types.MergePatchType,
				[]byte(`{"spec":{"suspend":true}}`),
				metav1.PatchOptions{},
			)
		default:
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		e.touched[job] = true
	}
}

// over returns the number of jobs that are over, in the expected way.
func (e *ending) over(t *testing.T) int {
	t.Helper()
	list, err := shared.Dynamic.Resource(trainJobs).Namespace(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	over := *leaks - len(list.Items) // the deleted ones
	want := map[string]string{
		"complete": "Complete",
		"fail":     "Failed",
		"deadline": "Failed",
		"suspend":  "Suspended",
		"delete":   "never",
	}
	for _, job := range list.Items {
		way, _, _ := strings.Cut(job.GetName(), "-")
		if slices.Contains(conditionsOf(t.Context(), t, e.namespace, job.GetName()), want[way]) {
			over++
		}
	}
	return over
}

// left returns the remaining objects of jobs, apart from those of suspended jobs.
func (e *ending) left(t *testing.T) []string {
	t.Helper()
	var left []string
	kinds := []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "services"},
		{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"},
		{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"},
		nvlink.Resource(),
		offered().API().Resource(),
	}
	if offered() != probe.Resources {
		kinds = append(kinds, workloads)
	}
	for _, kind := range kinds {
		list, err := shared.Dynamic.Resource(kind).Namespace(e.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			kept := strings.HasPrefix(item.GetName(), "suspend-") &&
				slices.Contains([]string{"configmaps", "secrets", "services"}, kind.Resource)
			phase, _, _ := unstructured.NestedString(item.Object, "status", "phase")
			ended := kind.Resource == "pods" && (phase == "Succeeded" || phase == "Failed") &&
				item.GetDeletionTimestamp() == nil
			if !kept && !ended && item.GetName() != "kube-root-ca.crt" {
				left = append(left, kind.Resource+" "+item.GetName())
			}
		}
	}
	for _, state := range frozenIn(t, e.namespace) {
		if name, _, _ := unstructured.NestedString(
			state.Object,
			"spec",
			"trainJob",
			"name",
		); !strings.HasPrefix(
			name,
			"suspend-",
		) {
			left = append(left, "frozen state of "+name)
		}
	}
	return left
}
