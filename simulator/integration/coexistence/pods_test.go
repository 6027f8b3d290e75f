package coexistence_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// enforce applies a policy of the chart, until the test ends, and returns when the API server follows it.
func enforce(t *testing.T, release render.Release, name string, follows func() bool) {
	t.Helper()
	if *kubernetes < "1.36" {
		t.Skip("MutatingAdmissionPolicies v1 are served from Kubernetes 1.36 on")
	}
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		found := rendered.Find(kind, name)
		if len(found) != 1 {
			t.Fatalf("there are %d of %s %s", len(found), kind, name)
		}
		if err := shared.Apply(ctx, found[0]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(ctx, t, found[0]) })
	}
	testcluster.Within(t, time.Minute, "the API server follows "+name, follows)
}

func remove(ctx context.Context, t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	plural := map[string]string{
		"MutatingAdmissionPolicy":        "mutatingadmissionpolicies",
		"MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
	}[object.GetKind()]
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}
	if err := shared.Dynamic.Resource(policies).Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// tried returns a pod as the API server would create it.
func tried(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	objects, err := render.Objects([]byte(strings.ReplaceAll(text, "NAMESPACE", namespaceOf(t))))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	convert(t, objects[0].Object, &pod)
	made, err := shared.Client.CoreV1().Pods(pod.Namespace).
		Create(t.Context(), &pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// podWith returns a pod with more metadata and more fields of its specification.
func podWith(metadata, spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {namespace: NAMESPACE, name: tried" + metadata + "}, " +
		"spec: {containers: [{name: main, image: example.com/a}]" + spec + "}}"
}

const (
	asksForGPUs = ", initContainers: [{name: first, image: example.com/a, resources: {limits: {nvidia.com/gpu: 1}}}]"
	ofDaemonSet = ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: exporter, uid: d}]"
	marked      = ", labels: {scheduling.x-k8s.io/pod-group: pi}"
	inGang      = ", labels: {lockstep.dev/pod-group: train}"
)

// Pods without accelerators get a rule, in each way in which a pod may have node affinity already, and pods that have
// reason to be there get none.
func TestPods_OffAccelerators(t *testing.T) {
	makeNamespace(t)
	enforce(t, render.Default().With("neighbors.pods.offAccelerators", true), "cpupods.lockstep.dev",
		func() bool { return len(termsOf(tried(t, podWith("", "")))) > 0 })
	for name, affinity := range map[string]string{
		"none":               "",
		"pods only":          ", affinity: {podAntiAffinity: {}}",
		"preferred only":     ", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}",
		"two terms":          ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}}}",
		"fields, not labels": ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [cpu-0]}]}]}}}",
	} {
		before := 0
		if strings.Contains(affinity, "required") {
			before = strings.Count(affinity, "operator: Exists")
		}
		terms, rules := termsOf(tried(t, podWith("", affinity))), 0
		for _, term := range terms {
			rules += len(term.MatchExpressions)
			last := term.MatchExpressions[len(term.MatchExpressions)-1]
			if last.Key != "nvidia.com/gpu.present" || last.Operator != corev1.NodeSelectorOpDoesNotExist {
				t.Errorf("affinity %s: a term is %+v", name, term)
			}
		}
		if len(terms) == 0 || rules != before+len(terms) {
			t.Errorf("affinity %s: the terms are %+v", name, terms)
		}
	}
	for name, pod := range map[string]string{
		"asks for accelerators":   podWith("", asksForGPUs),
		"is of a DaemonSet":       podWith(ofDaemonSet, ""),
		"is in a gang":            podWith(inGang, ""),
		"is a marked launcher":    podWith(marked, ", schedulerName: lockstep-scheduler"),
		"has opted out":           podWith(", annotations: {lockstep.dev/accelerator-nodes: allowed}", ""),
		"tolerates their taint":   podWith("", ", tolerations: [{key: nvidia.com/gpu, operator: Exists}]"),
		"names a node":            podWith("", ", nodeName: rack-0-node-0"),
		"claims devices":          podWith("", ", resourceClaims: [{name: gpu, resourceClaimName: gpu}]"),
		"is in another namespace": strings.Replace(podWith("", ""), "NAMESPACE", "kube-system", 1),
	} {
		if terms := termsOf(tried(t, pod)); len(terms) > 0 {
			t.Errorf("a pod that %s got %+v", name, terms)
		}
	}
}

// Pods without accelerators stay off the nodes that have some, also when there is no other room; those that opted out
// do not, and those that ask for accelerators land there as before. Both schedulers obey.
func TestPods_OffAcceleratorsWhereTheyLand(t *testing.T) {
	for _, scheduler := range []string{"default-scheduler", "lockstep-scheduler"} {
		t.Run(scheduler, func(t *testing.T) {
			makeNamespace(t)
			enforce(t, render.Default().With("neighbors.pods.offAccelerators", true), "cpupods.lockstep.dev",
				func() bool { return len(termsOf(tried(t, podWith("", "")))) > 0 })
			// Two machines without accelerators hold four pods of 8 CPUs.
			create(t, strings.Join([]string{
				servers(
					"web",
					scheduler,
					"",
					"{cpu: 8}",
				),
				servers("cache", scheduler, "lockstep.dev/accelerator-nodes: allowed", "{cpu: 8}"),
				servers("infer", scheduler, "", "{nvidia.com/gpu: 1}"),
			}, "---\n"))
			testcluster.Within(
				t,
				time.Minute,
				"all but some of web run",
				func() bool { return running(t, "cache") == 6 && running(t, "infer") == 6 },
			)
			for prefix, want := range map[string]bool{"web": false, "infer": true} {
				for _, pod := range pods(t, prefix) {
					if on := strings.HasPrefix(pod.Spec.NodeName, "rack-"); on != want && pod.Spec.NodeName != "" {
						t.Errorf("%s is on %s", pod.Name, pod.Spec.NodeName)
					}
				}
			}
			if here := running(t, "web"); here > 4 {
				t.Errorf("%d of web run", here)
			}
		})
	}
}

// servers returns a Job whose six pods run on, with an annotation.
func servers(name, scheduler, annotation, limits string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {namespace: NAMESPACE, name: %s}
spec:
  parallelism: 6
  template:
    metadata: {annotations: {simulator.lockstep.dev/run-time: 10m, %s}}
    spec:
      schedulerName: %s
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: example.com/serve:1, resources: {limits: %s}}]
`, name, annotation, scheduler, limits)
}

// Pods that ask for accelerators get Lockstep's scheduler, unless they name one or stay out.
func TestPods_ByLockstep(t *testing.T) {
	enforceByLockstep(t)
	for name, c := range map[string]struct{ pod, want string }{
		"without accelerators": {podWith("", ""), "default-scheduler"},
		"of another scheduler": {podWith("", asksForGPUs+", schedulerName: kai"), "kai"},
		"of a DaemonSet":       {podWith(ofDaemonSet, asksForGPUs), "default-scheduler"},
		"in a gang":            {podWith(inGang, asksForGPUs), "default-scheduler"},
		"of another's gang":    {podWith(marked, asksForGPUs), "default-scheduler"},
		"of a JobSet":          {podWith(", labels: {jobset.sigs.k8s.io/jobset-name: pre}", asksForGPUs), "default-scheduler"},
		"that has opted out":   {podWith(", annotations: {lockstep.dev/scheduler: native}", asksForGPUs), "default-scheduler"},
	} {
		if got := tried(t, c.pod).Spec.SchedulerName; got != c.want {
			t.Errorf("a pod %s has scheduler %s, want %s", name, got, c.want)
		}
	}
}

// enforceByLockstep makes the test's namespace, and has pods that ask for accelerators scheduled by Lockstep.
func enforceByLockstep(t *testing.T) {
	t.Helper()
	makeNamespace(t)
	enforce(t, render.Default().With("neighbors.pods.byLockstep", true), "acceleratorpods.lockstep.dev",
		func() bool { return tried(t, podWith("", asksForGPUs)).Spec.SchedulerName == "lockstep-scheduler" })
}

func termsOf(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}
