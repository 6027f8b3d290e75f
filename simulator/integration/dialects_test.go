package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// markedGang is a gang of four pods as another controller marks it.
type markedGang struct {
	dialect, group string
	// objects are those that the controller, or its user, creates beside the pods; REPLICAS stands for the number of
	// pods.
	objects string
	// labels and annotations are those of the pod of a rank; nil if the objects make the pods.
	labels, annotations func(rank, of int) map[string]string
}

func markedGangs() []markedGang {
	return []markedGang{
		{
			dialect: "scheduler-plugins",
			group:   "scheduler-plugins.pi",
			objects: `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {namespace: NAMESPACE, name: pi, annotations: {lockstep.dev/required-topology: clique}},
  spec: {minMember: REPLICAS}}`,
			labels: func(rank, _ int) map[string]string {
				return map[string]string{
					"scheduling.x-k8s.io/pod-group":       "pi",
					"training.kubeflow.org/replica-index": strconv.Itoa(rank),
				}
			},
		},
		{
			dialect: "kueue", group: "kueue.sky",
			labels: func(rank, _ int) map[string]string {
				return map[string]string{
					"kueue.x-k8s.io/pod-group-name":      "sky",
					"kueue.x-k8s.io/pod-group-pod-index": strconv.Itoa(rank),
				}
			},
			annotations: func(_, of int) map[string]string {
				return map[string]string{
					"kueue.x-k8s.io/pod-group-total-count": strconv.Itoa(
						of,
					),
					"kueue.x-k8s.io/podset-required-topology": "clique",
				}
			},
		},
		{
			dialect: "leaderworkerset",
			group:   "leaderworkerset.vllm-0",
			objects: `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {namespace: NAMESPACE, name: vllm}, spec: {startupPolicy: LeaderCreated}}`,
			labels: func(rank, _ int) map[string]string {
				return map[string]string{
					"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "0",
					"leaderworkerset.sigs.k8s.io/worker-index": strconv.Itoa(rank),
				}
			},
			annotations: func(_, of int) map[string]string {
				return map[string]string{
					"leaderworkerset.sigs.k8s.io/size": strconv.Itoa(
						of,
					),
					"leaderworkerset.sigs.k8s.io/exclusive-topology": "clique",
				}
			},
		},
		{
			dialect: "jobset",
			group:   "jobset.pre",
			objects: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {namespace: NAMESPACE, name: pre, annotations: {lockstep.dev/required-topology: clique}},
  spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: HALF, completions: HALF, completionMode: Indexed, template: TEMPLATE}}}]}}`,
		},
		{
			dialect: "job",
			group:   "job.sweep",
			objects: `{apiVersion: batch/v1, kind: Job, metadata: {namespace: NAMESPACE, name: sweep, annotations: {lockstep.dev/required-topology: clique}},
  spec: {parallelism: REPLICAS, completions: REPLICAS, completionMode: Indexed, template: TEMPLATE}}`,
		},
	}
}

// A gang that another controller marks is placed whole, in one domain, with its ranks in order; one that is too large
// waits, and reports why; its PodGroup is deleted with its last pod, or with the object behind its mark.
func TestDialects(t *testing.T) {
	serveForeign(t)
	for _, gang := range markedGangs() {
		t.Run(gang.dialect, func(t *testing.T) {
			gang.create(t, 4)
			var pods []corev1.Pod
			eventually(t, "the gang runs", func() bool {
				pods = podsIn(t, corev1.PodRunning)
				return len(pods) == 4
			})
			cliques := map[string]bool{}
			var nodes []string
			for _, pod := range pods {
				node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				cliques[node.Labels["nvidia.com/gpu.clique"]] = true
				nodes = append(nodes, pod.Spec.NodeName)
			}
			if len(cliques) != 1 || !slices.IsSorted(nodes) {
				t.Errorf("ranks are on %v, in cliques %v", nodes, cliques)
			}
			group := gang.podGroup(t)
			if group == nil || group.Annotations["lockstep.dev/dialect"] != gang.dialect ||
				group.Spec.SchedulingPolicy.Gang.MinCount != 4 {
				t.Errorf("its PodGroup is %+v", group)
			}
			gang.reports(t, 4)
			gang.remove(t)
			eventually(t, "its PodGroup goes", func() bool { return gang.podGroup(t) == nil })
		})
	}
}

// reports waits until the gang's own group says that so many members run, if its kind says such things.
func (g markedGang) reports(t *testing.T, running int64) {
	t.Helper()
	if g.dialect != "scheduler-plugins" {
		return
	}
	groups := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	eventually(t, "the status of its own group", func() bool {
		group, err := shared.Dynamic.Resource(groups).
			Namespace(namespaceOf(t)).
			Get(t.Context(), "pi", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status, _, _ := unstructured.NestedMap(group.Object, "status")
		return status["phase"] == "Running" && status["running"] == running
	})
}

// A marked gang for which there is no room waits whole, and its PodGroup says why.
func TestDialects_TooLargeWaits(t *testing.T) {
	serveForeign(t)
	gang := markedGangs()[0]
	gang.create(t, 40) // no clique has as many nodes
	eventually(t, "the reason", func() bool {
		group := gang.podGroup(t)
		if group == nil {
			return false
		}
		for _, condition := range group.Status.Conditions {
			if condition.Type == "lockstep.dev/Waiting" && condition.Status == metav1.ConditionTrue {
				t.Log(condition.Message)
				return strings.Contains(condition.Message, "40 members")
			}
		}
		return false
	})
	if pods := podsIn(t, corev1.PodRunning); len(pods) > 0 {
		t.Errorf("%d of its pods run", len(pods))
	}
}

// A tenant cannot move a pod into another gang by its marks.
func TestDialects_MarksStay(t *testing.T) {
	serveForeign(t)
	gang := markedGangs()[1]
	gang.create(t, 2)
	pods := shared.Client.CoreV1().Pods(namespaceOf(t))
	for _, patch := range []string{
		`{"metadata":{"labels":{"kueue.x-k8s.io/pod-group-name":"other"}}}`,
		`{"metadata":{"labels":{"kueue.x-k8s.io/pod-group-name":null}}}`,
		`{"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":"other"}}}`,
		`{"metadata":{"annotations":{"lockstep.dev/gang":"on"}}}`,
	} {
		_, err := pods.Patch(t.Context(), "rank-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "stays in it") {
			t.Errorf("%s: %v", patch, err)
		}
	}
}

// create creates a gang of so many pods of a whole node each in the test's namespace.
func (g markedGang) create(t *testing.T, replicas int) {
	t.Helper()
	const spec = `{schedulerName: lockstep-scheduler, terminationGracePeriodSeconds: 0, restartPolicy: Never,
  containers: [{name: main, image: example.com/a, resources: {limits: {nvidia.com/gpu: 4}}}]}`
	documents := []string{"{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE}}", g.objects}
	if g.labels != nil {
		for rank := replicas - 1; rank >= 0; rank-- { // the order of creation is not that of ranks
			documents = append(documents, fmt.Sprintf(
				"{apiVersion: v1, kind: Pod, spec: %s, metadata: {namespace: NAMESPACE, name: rank-%d, labels: %s, annotations: %s}}",
				spec,
				rank,
				inline(g.labels(rank, replicas)),
				inline(g.annotationsOf(rank, replicas)),
			))
		}
	}
	text := strings.NewReplacer("REPLICAS", strconv.Itoa(replicas), "HALF", strconv.Itoa(replicas/2), "NAMESPACE", namespaceOf(t),
		"TEMPLATE", `{metadata: {annotations: {lockstep.dev/gang: "on", simulator.lockstep.dev/run-time: 10m}}, spec: `+spec+`}`).
		Replace(strings.Join(documents, "\n---\n"))
	objects, err := render.Objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.remove(t) })
	for _, object := range objects {
		if _, err := shared.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// podGroup returns the PodGroup that stands for the gang; nil for none.
func (g markedGang) podGroup(t *testing.T) *schedulingv1beta1.PodGroup {
	t.Helper()
	group, err := shared.Client.SchedulingV1beta1().
		PodGroups(namespaceOf(t)).
		Get(t.Context(), g.group, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return group
}

func (g markedGang) annotationsOf(rank, of int) map[string]string {
	if g.annotations == nil {
		return nil
	}
	return g.annotations(rank, of)
}

// inline writes a map as YAML on one line.
func inline(of map[string]string) string {
	var fields []string
	for key, value := range of {
		fields = append(fields, fmt.Sprintf("%s: %q", key, value))
	}
	slices.Sort(fields)
	return "{" + strings.Join(fields, ", ") + "}"
}

// remove deletes the objects and the pods of a gang.
func (g markedGang) remove(t *testing.T) {
	t.Helper()
	ctx, namespace := context.WithoutCancel(t.Context()), namespaceOf(t)
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &background}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"},
		{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Version: "v1", Resource: "pods"},
	} {
		err := shared.Dynamic.Resource(resource).
			Namespace(namespace).
			DeleteCollection(ctx, options, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	}
}

// podsIn returns the pods of the test's namespace in a phase, in the order of their ranks.
func podsIn(t *testing.T, phase corev1.PodPhase) []corev1.Pod {
	t.Helper()
	list, err := shared.Client.CoreV1().Pods(namespaceOf(t)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.Status.Phase != phase })
	slices.SortFunc(found, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// serveForeign has the API server serve the kinds of controllers that are not here, by definitions that only say their
// names.
func serveForeign(t *testing.T) {
	t.Helper()
	for name, kinds := range map[string]string{
		"podgroups.scheduling.x-k8s.io": "PodGroup v1alpha1", "leaderworkersets.leaderworkerset.x-k8s.io": "LeaderWorkerSet v1",
	} {
		plural, group, _ := strings.Cut(name, ".")
		kind, version, _ := strings.Cut(kinds, " ")
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{
				"name": name, "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a stand-in"},
			},
			"spec": map[string]any{
				"group": group,
				"scope": "Namespaced",
				"names": map[string]any{"plural": plural, "kind": kind, "singular": strings.ToLower(kind)},
				"versions": []any{
					map[string]any{
						"name":         version,
						"served":       true,
						"storage":      true,
						"subresources": map[string]any{"status": map[string]any{}},
						"schema": map[string]any{
							"openAPIV3Schema": map[string]any{
								"type":                                 "object",
								"x-kubernetes-preserve-unknown-fields": true,
							},
						},
					},
				},
			},
		}}
		if _, err := shared.Create(t.Context(), definition); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		resource := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		eventually(t, name+" are served", func() bool {
			_, err := shared.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil
		})
	}
}
