package kueue_test

import (
	"cmp"
	"fmt"
	"maps"
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
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
)

var jobSets = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}

// held is a queue that admits nothing: Kueue makes Workloads, and no pod exists.
const held = `apiVersion: v1
kind: Namespace
metadata: {name: held}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: held}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: held}
spec:
  namespaceSelector: {}
  stopPolicy: Hold
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: held
      resources:
      - {name: cpu, nominalQuota: 1}
      - {name: memory, nominalQuota: 1Gi}
      - {name: nvidia.com/gpu, nominalQuota: 1}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: held, namespace: held}
spec: {clusterQueue: held}
`

// trainers are the trainers' parts of jobs, by the name that is in the transcript.
var trainers = map[string]string{
	"shipped":   `{}`,
	"nodes":     `{numNodes: 3}`,
	"resources": `{numNodes: 2, resourcesPerNode: {requests: {cpu: 3, memory: 5Gi}, limits: {nvidia.com/gpu: 4}}}`,
	"cpus":      `{numNodes: 2, resourcesPerNode: {requests: {cpu: 3}}}`,
	"processes": `{numNodes: 2, numProcPerNode: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}`,
}

// podSet is a quota's count of pods that are alike: their number, and the requests of each.
type podSet struct {
	name     string
	count    int32
	requests string
}

func (p podSet) String() string { return fmt.Sprintf("%d %s {%s}", p.count, p.name, p.requests) }

// Kueue never reads a JobSet: it renders the runtime anew with the code of Kubeflow Trainer 2.2 and counts that. For
// each runtime that ships, its Workload has the podsets of the JobSet that Lockstep renders. Jobs whose usage it would
// undercount are refused, and listed here.
func TestWorkload_PodSetsAreThoseOfTheJobSet(t *testing.T) {
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	apply(t, held)
	compared, refused := 0, map[string]bool{}
	for _, name := range runtimesOf(catalog) {
		for _, variant := range slices.Sorted(maps.Keys(trainers)) {
			key, job := name+" "+variant, fitted(t, name, variant)
			if err := create(t, job); apierrors.IsForbidden(err) {
				refused[key] = true
				t.Logf("%-28s %-9s REFUSED: %v", name, variant, err)
				if why := uncounted[key]; why == "" || !strings.Contains(err.Error(), why) {
					t.Errorf("%s is refused with %v, want %q", key, err, why)
				}
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			counts, renders := counted(t, job.GetName()), rendered(t, job.GetName())
			compared++
			t.Logf("%-28s %-9s %v", name, variant, counts)
			if !slices.Equal(counts, renders) {
				t.Errorf("%s: Kueue counts %v, and Lockstep renders %v", key, counts, renders)
			}
		}
	}
	for key := range uncounted {
		if !refused[key] {
			t.Errorf("%s is let in: remove it from the list", key)
		}
	}
	t.Logf(
		"%d jobs of %d runtimes: Kueue's podsets equal the JobSet's; %d refused",
		compared,
		len(runtimesOf(catalog)),
		len(refused),
	)
}

// uncounted are the jobs that are refused, because Kueue 0.19 counts resourcesPerNode in the place of the runtime's
// resources, and pods have both; each with the resources that Kueue would not count.
var uncounted = map[string]string{
	"deepspeed-distributed-gpu cpus":        "would not count nvidia.com/gpu: 1;",
	"flux-distributed-gpu cpus":             "would not count nvidia.com/gpu: 1;",
	"jax-distributed-gpu cpus":              "would not count nvidia.com/gpu: 1;",
	"mlx-distributed-gpu cpus":              "would not count nvidia.com/gpu: 1;",
	"plain-gpu cpus":                        "would not count nvidia.com/gpu: 1;",
	"pytorch-distributed-gpu cpus":          "would not count nvidia.com/gpu: 1;",
	"torch-distributed-with-cache-gpu cpus": "would not count nvidia.com/gpu: 1;",
	"xgboost-distributed-gpu cpus":          "would not count nvidia.com/gpu: 1;",
	"torchtune-llama3.2-1b cpus":            "would not count nvidia.com/gpu: 2;",
	"torchtune-llama3.2-3b cpus":            "would not count nvidia.com/gpu: 2;",
	"torchtune-qwen2.5-1.5b cpus":           "would not count nvidia.com/gpu: 2;",
}

func runtimesOf(catalog liverun.Catalog) []string {
	var names []string
	for _, object := range catalog {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return names
}

// fitted is a job of a runtime with a variant's trainer. Torchtune trains on one node and is started by its own
// command.
func fitted(t *testing.T, runtime, variant string) *unstructured.Unstructured {
	t.Helper()
	trainer := map[string]any{}
	if err := yaml.Unmarshal([]byte(trainers[variant]), &trainer); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(runtime, "torchtune-") {
		trainer["command"] = []any{"tune", "run"}
		if trainer["numNodes"] != nil {
			trainer["numNodes"] = int64(1)
		}
	}
	for key, value := range trainer {
		if number, ok := value.(float64); ok {
			trainer[key] = int64(number)
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{
			"name": strings.NewReplacer(".", "-", "-distributed", "").
				Replace(runtime) +
				"-" + variant[:3], // pods have longer names
			"labels":    map[string]any{queueLabel: "held"},
			"namespace": "held",
		},
		"spec": map[string]any{"runtimeRef": map[string]any{"name": runtime}, "trainer": trainer},
	}}
}

func create(t *testing.T, job *unstructured.Unstructured) error {
	t.Helper()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace("held").Create(t.Context(), job, metav1.CreateOptions{})
	return err
}

// counted waits for Kueue's Workload of a job.
func counted(t *testing.T, job string) []podSet {
	t.Helper()
	var sets []podSet
	testcluster.Within(t, 30*time.Second, "a Workload of "+job, func() bool {
		list, err := shared.Dynamic.Resource(workloads).Namespace("held").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			if owners := item.GetOwnerReferences(); len(owners) != 1 || owners[0].Name != job {
				continue
			}
			entries, _, _ := unstructured.NestedSlice(item.Object, "spec", "podSets")
			for _, entry := range entries {
				var set struct {
					Name     string                 `json:"name"`
					Count    int32                  `json:"count"`
					Template corev1.PodTemplateSpec `json:"template"`
				}
				convert(t, entry.(map[string]any), &set)
				sets = append(sets, podSet{set.Name, set.Count, requestsOf(set.Template.Spec)})
			}
		}
		return len(sets) > 0
	})
	return sets
}

// rendered waits for Lockstep's JobSet of a job.
func rendered(t *testing.T, job string) []podSet {
	t.Helper()
	var sets []podSet
	testcluster.Within(t, 30*time.Second, "a JobSet of "+job, func() bool {
		object, err := shared.Dynamic.Resource(jobSets).Namespace("held").Get(t.Context(), job, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		var jobSet jobsetv1alpha2.JobSet
		convert(t, object.Object, &jobSet)
		for _, replicated := range jobSet.Spec.ReplicatedJobs {
			spec := replicated.Template.Spec
			parallel := ptr.Deref(spec.Parallelism, 1)
			pods := replicated.Replicas * min(parallel, ptr.Deref(spec.Completions, parallel))
			sets = append(sets, podSet{replicated.Name, pods, requestsOf(spec.Template.Spec)})
		}
		return true
	})
	return sets
}

// requestsOf prints the requests of a pod once the API server has filled in requests from limits.
func requestsOf(spec corev1.PodSpec) string {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			requests := corev1.ResourceList{}
			maps.Copy(requests, containers[i].Resources.Limits)
			maps.Copy(requests, containers[i].Resources.Requests)
			containers[i].Resources.Requests = requests
		}
	}
	total := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(total), cmp.Compare[corev1.ResourceName]) {
		quantity := total[name]
		parts = append(parts, string(name)+" "+quantity.String())
	}
	return strings.Join(parts, ", ")
}

func convert(t *testing.T, from map[string]any, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, into); err != nil {
		t.Fatal(err)
	}
}
