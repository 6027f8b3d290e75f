package podgrouper_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clienttesting "k8s.io/client-go/testing"
)

// becomes changes the node and the phase of a pod.
func (w *fakeCluster) becomes(name, node string, phase corev1.PodPhase) {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods("team").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName, pod.Status.Phase = node, phase
	if _, err := w.client.CoreV1().Pods("team").Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// untilStatus waits until the status of a PodGroup of scheduler-plugins says something.
func (w *fakeCluster) untilStatus(name, phase string, running int64) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		object, err := w.objects.Resource(foreign).Namespace("team").Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		now, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		runs, _, _ := unstructured.NestedInt64(object.Object, "status", "running")
		if now == phase && runs == running {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("the status is %v, want %s with %d running", object.Object["status"], phase, running)
		}
	}
}

// patches returns the patches of objects so far.
func (w *fakeCluster) patches() []string {
	var found []string
	for _, action := range w.objects.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			found = append(found, fmt.Sprintf("%s %s", patch.GetSubresource(), patch.GetPatch()))
		}
	}
	return found
}

// The status of a foreign PodGroup follows the members, and is written when it changes only.
func TestGrouper_WritesTheForeignStatus(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t, foreign.Resource)
	w.group("g", 2, nil)
	for _, name := range []string{"a", "b"} {
		w.pod(name, map[string]string{"scheduling.x-k8s.io/pod-group": "g"}, nil)
	}
	w.untilStatus("g", "Pending", 0)
	w.becomes("a", "n", corev1.PodPending)
	w.becomes("b", "n", corev1.PodPending)
	w.untilStatus("g", "Scheduling", 0)
	w.becomes("a", "n", corev1.PodRunning)
	w.becomes("b", "n", corev1.PodRunning)
	w.untilStatus("g", "Running", 2)
	before := len(w.patches())
	w.becomes("a", "n", corev1.PodRunning)
	w.group("g", 2, nil) // which leaves out the status: the grouper writes it again
	w.untilStatus("g", "Running", 2)
	w.becomes("a", "n", corev1.PodSucceeded)
	w.becomes("b", "n", corev1.PodSucceeded)
	w.untilStatus("g", "Finished", 0)
	patches := w.patches()
	if len(patches)-before > 3 {
		t.Errorf("it is written %d times:\n%s", len(patches)-before, strings.Join(patches[before:], "\n"))
	}
	for _, patch := range patches {
		subresource, text, _ := strings.Cut(patch, " ")
		var content struct {
			Status map[string]any `json:"status"`
		}
		if err := json.Unmarshal(
			[]byte(text),
			&content,
		); err != nil || subresource != "status" ||
			len(content.Status) == 0 {
			t.Errorf("%q is patched by %s (%v)", subresource, text, err)
		}
	}
}

// A status that something else has written stays that one's.
func TestGrouper_LeavesTheStatusOfOthers(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t, foreign.Resource)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": foreign.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "team", "name": "g", "uid": "u"},
		"spec":     map[string]any{"minMember": int64(1)},
		"status":   map[string]any{"phase": "theirs"},
	}}
	object.SetManagedFields(
		[]metav1.ManagedFieldsEntry{
			{Manager: "controller", Subresource: "status", Operation: metav1.ManagedFieldsOperationUpdate},
		},
	)
	if _, err := w.objects.Resource(foreign).
		Namespace("team").
		Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.pod("a", map[string]string{"scheduling.x-k8s.io/pod-group": "g"}, nil)
	w.until("scheduler-plugins.g", "it is not created", func(g *schedulingv1beta1.PodGroup) bool { return g != nil })
	w.becomes("a", "n", corev1.PodRunning)
	time.Sleep(1500 * time.Millisecond) // in which it would be written
	if patches := w.patches(); len(patches) > 0 {
		t.Errorf("it is written: %s", strings.Join(patches, "\n"))
	}
}
