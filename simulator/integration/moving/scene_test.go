package moving_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

const (
	team = "team-a"
	// patience is for steps that take seconds on a quiet machine; testcluster.Within multiplies it.
	patience = 90 * time.Second
)

var trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}

// gang is a TrainJob of so many trays in one clique.
func gang(name string, nodes int, annotations ...string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: %s
  annotations:
    simulator.lockstep.dev/run-time: 2h
    %s
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
---
`, name, team, strings.Join(annotations, "\n    "), nodes)
}

func inClique(name string, nodes int) string {
	return gang(name, nodes, "lockstep.dev/required-topology: nvidia.com/gpu.clique")
}

// sharing is a gang whose pods share one claim for the device of their clique.
const sharing = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fabric.example.com}
spec: {selectors: [{cel: {expression: device.driver == "fabric.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fabric}
spec:
  driver: fabric.example.com
  pool: {name: fabric, generation: 1, resourceSliceCount: 1}
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.clique, operator: Exists}]}]}
  devices: [{name: clique}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-clique, namespace: team-a}
spec: {spec: {devices: {requests: [{name: clique, exactly: {deviceClassName: fabric.example.com}}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: sharing, namespace: team-a}
spec:
  mlPolicy: {numNodes: 4, torch: {}}
  scheduling:
    schedulingConstraints: {topology: [{key: nvidia.com/gpu.clique}]}
    resourceClaims: [{name: fabric, resourceClaimTemplateName: one-clique}]
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              metadata: {annotations: {simulator.lockstep.dev/run-time: 2h}}
              spec:
                containers:
                - {name: node, image: torch, resources: {limits: {nvidia.com/gpu: 4}, claims: [{name: fabric}]}}
                resourceClaims: [{name: fabric, resourceClaimTemplateName: one-clique}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: sharing, namespace: team-a, annotations: {simulator.lockstep.dev/run-time: 2h}}
spec: {runtimeRef: {name: sharing, kind: TrainingRuntime}}
`

// scene is the cluster as one test moves it.
type scene struct {
	t     *testing.T
	began time.Time
}

func (s scene) say(format string, values ...any) {
	s.t.Helper()
	s.t.Logf("%5.1fs %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, values...))
}

func (s scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// submit creates the objects of a text in order.
func (s scene) submit(text string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "jobs.yaml")
	s.must(os.WriteFile(file, []byte(text), 0o600))
	shared.Submit(s.t, file)
}

// eventually waits; the condition returns the missing part, "" if all is there.
func (s scene) eventually(what string, missing func() string) {
	s.t.Helper()
	last := ""
	s.t.Cleanup(func() {
		if last != "" {
			s.t.Logf("%s: %s", what, last)
		}
	})
	testcluster.Within(s.t, patience, what, func() bool {
		last = missing()
		return last == ""
	})
	s.say("%s", what)
}

// groups are the PodGroups of an API, by name.
func (s scene) groups(api gangapi.API) map[string]schedulingv1beta1.PodGroup {
	s.t.Helper()
	client, err := gangapi.Client(shared.Admin, api)
	s.must(err)
	list, err := client.SchedulingV1beta1().PodGroups(team).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	found := map[string]schedulingv1beta1.PodGroup{}
	for _, group := range list.Items {
		found[group.Name] = group
	}
	return found
}

// place is the node of a pod, and the pod's identity.
type place struct {
	uid  types.UID
	node string
}

// running are the pods that run, by name.
func (s scene) running() map[string]place {
	s.t.Helper()
	list, err := shared.Client.CoreV1().Pods(team).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	found := map[string]place{}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
			found[pod.Name] = place{pod.UID, pod.Spec.NodeName}
		}
	}
	return found
}

// members returns the number of a job's pods that run.
func (s scene) members(job string) int {
	count := 0
	for name := range s.running() {
		if strings.HasPrefix(name, job+"-") {
			count++
		}
	}
	return count
}

// undisturbed fails if a pod of before does not run any more, or runs elsewhere.
func (s scene) undisturbed(before map[string]place) {
	s.t.Helper()
	now := s.running()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			s.t.Errorf("pod %s was %v and is %v", name, before[name], now[name])
		}
	}
	s.say("%d pods run as before", len(before))
}

// said returns the status of a TrainJob about its gang.
func (s scene) said(job string) trainerv1alpha1.SchedulingStatus {
	s.t.Helper()
	found, err := shared.Dynamic.Resource(trainJobs).Namespace(team).Get(s.t.Context(), job, metav1.GetOptions{})
	s.must(err)
	var typed trainerv1alpha1.TrainJob
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &typed))
	if typed.Status.Scheduling == nil {
		return trainerv1alpha1.SchedulingStatus{}
	}
	return *typed.Status.Scheduling
}

// remove deletes a TrainJob.
func (s scene) remove(job string) {
	s.t.Helper()
	s.must(shared.Dynamic.Resource(trainJobs).Namespace(team).Delete(s.t.Context(), job, metav1.DeleteOptions{}))
	s.say("%s is deleted", job)
}

// suspend suspends a TrainJob, or resumes it.
func (s scene) suspend(job string, on bool) {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"suspend": on}})
	s.must(err)
	_, err = shared.Dynamic.Resource(trainJobs).Namespace(team).
		Patch(s.t.Context(), job, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err)
	s.say("%s is suspended: %t", job, on)
}
