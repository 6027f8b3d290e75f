package tpu_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

const namespace = metav1.NamespaceDefault

// page is compared with the cluster's output.
const page = "../../../docs/tpu.md"

func resource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: kind}
}

// create sends an object to the API server and takes it away after the test.
func create(t *testing.T, kind, text string) error {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	objects := shared.Dynamic.Resource(resource(kind)).Namespace(namespace)
	if _, err := objects.Create(t.Context(), &object, metav1.CreateOptions{}); err != nil {
		return err
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := objects.Delete(
			ctx,
			object.GetName(),
			metav1.DeleteOptions{},
		); err != nil &&
			!apierrors.IsNotFound(err) {
			t.Error(err)
		}
		_ = wait.PollUntilContextTimeout(
			ctx,
			100*time.Millisecond,
			testcluster.Patience(time.Minute),
			true,
			func(context.Context) (bool, error) {
				return len(shared.PodsOf(ctx, t, namespace, object.GetName())) == 0, nil
			},
		)
	})
	return nil
}

// runtimeOf is a JAX runtime with TPUs of so many Jobs whose pods have these selectors, annotations and chips.
func runtimeOf(name string, replicas int, selector, annotations string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: %s, namespace: default}
spec:
  mlPolicy: {jax: {}}
  template: {spec: {replicatedJobs: [{name: node, replicas: %d, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
    spec: {template: {metadata: {annotations: {simulator.lockstep.dev/run-time: 10m%s}}, spec: {nodeSelector: {%s}, containers: [{name: node, image: jax, command: [train],
      resources: {limits: {google.com/tpu: 4}}}]}}}}}]}}
`, name, replicas, annotations, selector)
}

// start makes a runtime and a job of it.
func start(t *testing.T, runtime, job string, nodes int, annotations string) {
	t.Helper()
	if err := create(t, "trainingruntimes", runtime); err != nil {
		t.Fatal(err)
	}
	if err := submit(t, job, nodes, annotations); err != nil {
		t.Fatal(err)
	}
}

// submit makes a job of the runtime of the same name up to the first dash.
func submit(t *testing.T, job string, nodes int, annotations string) error {
	t.Helper()
	runtime, _, _ := strings.Cut(job, "-")
	return create(t, "trainjobs", fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: default, annotations: {lockstep.dev/gang: "on"%s}}
spec: {runtimeRef: {kind: TrainingRuntime, name: %s}, trainer: {numNodes: %d}}
`, job, annotations, runtime, nodes))
}

// placed waits until so many pods of a job run, and returns them by name.
func placed(t *testing.T, job string, count int) map[string]corev1.Pod {
	t.Helper()
	var pods map[string]corev1.Pod
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s is %+v", job, schedulingOf(t, job))
		}
	})
	testcluster.Within(t, time.Minute, fmt.Sprintf("%d pods of %s run", count, job), func() bool {
		pods = map[string]corev1.Pod{}
		for _, pod := range shared.PodsOf(t.Context(), t, namespace, job) {
			if pod.Status.Phase == corev1.PodRunning {
				name := pod.Name[:strings.LastIndexByte(pod.Name, '-')]
				pods[name] = pod
			}
		}
		return len(pods) == count
	})
	return pods
}

// domains are the values of a node label for the pods whose names begin so, sorted, each once.
func domains(t *testing.T, pods map[string]corev1.Pod, prefix, label string) []string {
	t.Helper()
	found := map[string]bool{}
	for name, pod := range pods {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found[node.Labels[label]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// schedulingOf returns the part of a job's status about its start.
func schedulingOf(t *testing.T, job string) trainerv1alpha1.SchedulingStatus {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	object, err := shared.Dynamic.Resource(resource("trainjobs")).
		Namespace(namespace).
		Get(ctx, job, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var typed trainerv1alpha1.TrainJob
	if err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Status.Scheduling == nil {
		return trainerv1alpha1.SchedulingStatus{}
	}
	return *typed.Status.Scheduling
}

// waits checks the final reason in a job's status why it does not start, and compares the page with it. The scheduler
// writes a reason that differs from the first one up to a minute later.
func waits(t *testing.T, job, want string) {
	t.Helper()
	said := ""
	testcluster.Within(t, time.Minute, fmt.Sprintf("%q as the reason of %s", want, job), func() bool {
		if reason := schedulingOf(t, job).Reason; reason != said {
			said = reason
			t.Logf("%s says %q", job, said)
		}
		return strings.Contains(said, want)
	})
	text, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("docs/tpu.md does not show %q (%v)", want, err)
	}
}

const pool, cube = "cloud.google.com/gke-nodepool", "cloud.google.com/gke-tpu-partition-4x4x4-id"

// TestTPU_StaticSlices gives each Job of a multislice job a node pool of its own, and libtpu and JAX the environment
// that they need; the next job has too few pools, and reports the shape that it lacks.
func TestTPU_StaticSlices(t *testing.T) {
	const selector = "cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice, cloud.google.com/gke-tpu-topology: 4x4"
	start(t, runtimeOf("pools", 2, selector, ""), "pools-first", 8, "")
	pods := placed(t, "pools-first", 8)
	first, second := domains(t, pods, "pools-first-node-0-", pool), domains(t, pods, "pools-first-node-1-", pool)
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("slice 0 is in %v, slice 1 in %v: want a pool of its own for each", first, second)
	}
	env := map[string]string{}
	for _, v := range pods["pools-first-node-1-2"].Spec.Containers[0].Env {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			env[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
	}
	for name, want := range map[string]string{
		"JAX_NUM_PROCESSES": "8", "JAX_COORDINATOR_ADDRESS": "pools-first-node-0-0.pools-first:29500",
		"MEGASCALE_NUM_SLICES": "2", "MEGASCALE_COORDINATOR_ADDRESS": "pools-first-node-0-0.pools-first",
		"MEGASCALE_SLICE_ID": "metadata.labels['jobset.sigs.k8s.io/job-index']",
		"TPU_WORKER_ID":      "metadata.annotations['batch.kubernetes.io/job-completion-index']",
		"TPU_WORKER_HOSTNAMES": "pools-first-node-$(MEGASCALE_SLICE_ID)-0.pools-first,pools-first-node-$(MEGASCALE_SLICE_ID)-1.pools-first," +
			"pools-first-node-$(MEGASCALE_SLICE_ID)-2.pools-first,pools-first-node-$(MEGASCALE_SLICE_ID)-3.pools-first",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if label := pods["pools-first-node-1-2"].Labels["jobset.sigs.k8s.io/job-index"]; label != "1" {
		t.Errorf("JobSet labels the pod with job-index %q", label)
	}
	if err := submit(t, "pools-second", 8, ""); err != nil {
		t.Fatal(err)
	}
	waits(t, "pools-second", "needs 8 members on TPU slices 4x4; the cluster holds 4 of 8")
	if err := submit(t, "pools-third", 6, ""); err == nil || !strings.Contains(err.Error(),
		"must be 8: 4 hosts of each TPU slice 4x4, times 2, the number of slices") {
		t.Errorf("6 nodes for two slices of 4: %v", err)
	}
}

// TestTPU_ComputeClass has no shape to follow: a Job gets one pool that is a slice.
func TestTPU_ComputeClass(t *testing.T) {
	start(t, runtimeOf("class", 1, "cloud.google.com/compute-class: v5e", ""), "class-job", 4, "")
	if in := domains(t, placed(t, "class-job", 4), "class-job-", pool); len(in) != 1 {
		t.Errorf("it is in pools %v, want one", in)
	}
}

// TestTPU_DynamicSlices takes parts of cubes that are whole and healthy, of an unhealthy cube too, and whole cubes
// wherever they are.
func TestTPU_DynamicSlices(t *testing.T) {
	const tpu7x = "cloud.google.com/gke-tpu-accelerator: tpu7x"
	const shape = ", cloud.google.com/gke-tpu-slice-topology: "
	start(t, runtimeOf("cubes", 1, tpu7x, shape+"4x4x8"), "cubes-job", 32, "")
	cubes := domains(t, placed(t, "cubes-job", 32), "cubes-job-", cube)
	if len(cubes) != 2 || slices.Contains(cubes, "cube-2") {
		t.Errorf("32 hosts are in cubes %v, want two healthy ones", cubes)
	}
	start(t, runtimeOf("slices", 2, tpu7x, shape+"4x4x4"), "slices-job", 32, "")
	pods := placed(t, "slices-job", 32)
	for _, slice := range []string{"slices-job-node-0-", "slices-job-node-1-"} {
		if in := domains(t, pods, slice, cube); len(in) != 1 || in[0] == "cube-2" {
			t.Errorf("%s is in cubes %v, want one healthy one", slice, in)
		}
	}
	start(t, runtimeOf("quarter", 1, tpu7x, shape+"2x2x4"), "quarter-job", 4, "")
	quarters := domains(t, placed(t, "quarter-job", 4), "quarter-job-", "cloud.google.com/gke-tpu-partition-2x2x4-id")
	if len(quarters) != 1 || !strings.HasPrefix(quarters[0], "cube-2-") {
		t.Errorf("4 hosts are in %v, want one part of the unhealthy cube, which is the only one free", quarters)
	}
	start(t, runtimeOf("whole", 1, tpu7x, shape+"4x4x4"), "whole-job", 16, "")
	waits(t, "whole-job", "needs 16 members on TPU slices 4x4x4 in one tpu-4x4x4")
}

// TestTPU_Torus places a box around the ring, and says that there is none for the next gang.
func TestTPU_Torus(t *testing.T) {
	const wired = "cloud.google.com/gke-tpu-accelerator: wired"
	start(t, runtimeOf("torus", 1, wired, ""), "torus-first", 4, `, lockstep.dev/torus-box: "2x2"`)
	placed(t, "torus-first", 4)
	if err := submit(t, "torus-one", 1, ""); err != nil {
		t.Fatal(err)
	}
	placed(t, "torus-one", 1)
	if err := submit(t, "torus-second", 4, `, lockstep.dev/torus-box: "2x2"`); err != nil {
		t.Fatal(err)
	}
	waits(t, "torus-second", "no torus has a free box of 2x2x1 nodes; nearest -/wired: 3 of 4")
}

// TestTPU_Samples run to their ends.
func TestTPU_Samples(t *testing.T) {
	_, submitted := shared.Submit(t, "../../../manifests/samples-tpu")
	for name, job := range shared.Watch(t, submitted, 2*time.Minute) {
		if job.Outcome != "Complete" {
			t.Errorf("%s is %s: %s", name, job.Outcome, job.Reason)
		}
	}
}
