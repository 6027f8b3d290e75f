package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// shape is a change of a suspended job of two nodes that its JobSet does not take.
type shape struct {
	// patch is a merge patch of the job.
	patch string
	// members is the number of pods after the change. shows reports whether a pod has the change.
	members int
	shows   func(corev1.PodSpec) bool
}

// patched is the shape of a job with a runtime patch of its pods' spec.
func patched(pod string, shows func(corev1.PodSpec) bool) shape {
	const format = `{"spec":{"runtimePatches":[{"manager":"a.b/c","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[
		{"name":"node","template":{"spec":{"template":{"spec":%s}}}}]}}}}]}}`
	return shape{patch: fmt.Sprintf(format, pod), members: 2, shows: shows}
}

func shapes() map[string]shape {
	return map[string]shape{
		"affinity": patched(
			`{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
				{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"nobody":"has"}}}]}}}`,
			func(p corev1.PodSpec) bool { return p.Affinity != nil && p.Affinity.PodAntiAffinity != nil }),
		"volumes": patched(`{"volumes":[{"name":"scratch","emptyDir":{}}]}`, func(p corev1.PodSpec) bool {
			return slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == "scratch" })
		}),
		"account": patched(`{"serviceAccountName":"trainer"}`,
			func(p corev1.PodSpec) bool { return p.ServiceAccountName == "trainer" }),
		"nodes": {
			patch: `{"spec":{"trainer":{"numNodes":5}}}`, members: 5, shows: func(corev1.PodSpec) bool { return true },
		},
		"resources": {
			patch:   `{"spec":{"trainer":{"resourcesPerNode":{"limits":{"nvidia.com/gpu":"3"}}}}}`,
			members: 2, shows: func(p corev1.PodSpec) bool {
				gpus := p.Containers[0].Resources.Limits["nvidia.com/gpu"]
				return gpus.Value() == 3
			},
		},
	}
}

// Every admitted change of a suspended job has its effect when the job is resumed: the job neither runs as it was, nor
// hangs. That holds for a job that has not run yet, for one that has, and for a change together with the resumption.
func TestSuspendedJob_TakesAnotherShape(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "trainer"}}
	_, err := shared.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The annotation for the run time of fake pods is on the pods: on a slow machine they would have ended before all
	// were checked.
	lasting := &unstructured.Unstructured{Object: testcluster.TorchRuntime("lasting", "10m")}
	lasting.SetAPIVersion(trainingRuntimes.GroupVersion().String())
	_, err = shared.Dynamic.Resource(trainingRuntimes).
		Namespace(namespace).
		Create(t.Context(), lasting, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]shape{}
	for change, of := range shapes() {
		for _, when := range []string{"queued", "ran", "at-once"} {
			name := when + "-" + change
			jobs[name] = of
			kept(t, trainJobs, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: %s}
spec:
  suspend: %t
  runtimeRef: {name: lasting, kind: TrainingRuntime}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
`, name, namespace, when != "ran"))
		}
	}
	for name := range jobs {
		if strings.HasPrefix(name, "ran-") {
			newRunners(t, namespace, name, 2, nil)
			change(t, namespace, name, `{"spec":{"suspend":true}}`)
		}
		testcluster.Within(t, 60*time.Second, "a JobSet without pods of "+name, func() bool {
			return rests(t, namespace, name)
		})
	}
	for name, of := range jobs {
		if strings.HasPrefix(name, "at-once-") {
			change(t, namespace, name, strings.Replace(of.patch, `{"spec":{`, `{"spec":{"suspend":false,`, 1))
		} else {
			change(t, namespace, name, of.patch)
			change(t, namespace, name, `{"spec":{"suspend":false}}`)
		}
	}
	for name, of := range jobs {
		t.Run(name, func(t *testing.T) {
			for _, pod := range newRunners(t, namespace, name, of.members, nil) {
				if !of.shows(pod.Spec) {
					t.Errorf("pod %s is as it was", pod.Name)
				}
			}
			if held := conditionsOf(t.Context(), t, namespace, name); len(held) > 0 {
				t.Errorf("the job is %v while its pods run", held)
			}
		})
	}
}

// rests reports whether a job has a JobSet, which knows of no active pods, and no pods.
func rests(t *testing.T, namespace, name string) bool {
	t.Helper()
	jobSet, err := shared.Dynamic.Resource(jobSets).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	jobs, _, _ := unstructured.NestedSlice(jobSet.Object, "status", "replicatedJobsStatus")
	active := slices.ContainsFunc(jobs, func(of any) bool {
		fields, ok := of.(map[string]any)
		return ok && fields["active"] != int64(0)
	})
	return !active && len(podsOf(t.Context(), t, namespace, name)) == 0
}

// change changes a TrainJob by a merge patch.
func change(t *testing.T, namespace, name, patch string) {
	t.Helper()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).
		Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("changing TrainJob %s: %v", name, err)
	}
}
