package eviction_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
)

var errBusy = errors.New("the API server is busy")

func rank() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train-0", UID: "one", Generation: 3}}
}

func mark() eviction.Mark {
	return eviction.Mark{
		Now: metav1.NewTime(
			time.Date(2026, 11, 29, 7, 0, 0, 0, time.UTC),
		),
		Reason:      "GangPreempted",
		Message:     "for another gang",
		Annotations: map[string]string{"lockstep.dev/for": "b"},
	}
}

// answers has the API server answer a verb with an error.
func answers(client *fake.Clientset, verb string, err error) {
	client.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func verbs(client *fake.Clientset) string {
	var out []string
	for _, a := range client.Actions() {
		out = append(out, strings.TrimSuffix(a.GetVerb()+" "+a.GetResource().Resource+"/"+a.GetSubresource(), "/"))
	}
	return strings.Join(out, ", ")
}

// The condition comes first, for this very pod, else the Job counts the end as a failure of its program; then the
// deletion of this very pod.
func TestEvict_MarksThenDeletes(t *testing.T) {
	client := fake.NewClientset(rank())
	if err := eviction.Evict(t.Context(), client, rank(), mark()); err != nil {
		t.Fatal(err)
	}
	if got := verbs(client); got != "patch pods/status, delete pods" {
		t.Fatal(got)
	}
	patch, isPatch := client.Actions()[0].(clienttesting.PatchAction)
	remove, isDelete := client.Actions()[1].(clienttesting.DeleteAction)
	if !isPatch || !isDelete {
		t.Fatal(client.Actions())
	}
	var sent corev1.Pod
	if err := json.Unmarshal(patch.GetPatch(), &sent); err != nil {
		t.Fatal(err)
	}
	want := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "one", Annotations: mark().Annotations}}
	want.Status.Conditions = []corev1.PodCondition{
		{
			Type:               corev1.DisruptionTarget,
			Status:             corev1.ConditionTrue,
			ObservedGeneration: 3,
			LastTransitionTime: mark().Now,
			Reason:             "GangPreempted",
			Message:            "for another gang",
		},
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Error(diff)
	}
	options := remove.GetDeleteOptions()
	if options.Preconditions == nil || *options.Preconditions.UID != "one" || options.GracePeriodSeconds != nil {
		t.Errorf("deleted with %+v, want the pod's own grace and its UID", options)
	}
}

// A pod that is gone, or replaced by another of its name, needs no eviction. One that could not be marked is not
// deleted.
func TestEvict_Faults(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		verb   string
		answer error
		fails  bool
		sends  string
	}{
		"gone before the mark":     {"patch", apierrors.NewNotFound(pods, "train-0"), false, "patch pods/status, delete pods"},
		"replaced before the mark": {"patch", apierrors.NewConflict(pods, "train-0", nil), false, "patch pods/status, delete pods"},
		"gone before the deletion": {"delete", apierrors.NewNotFound(pods, "train-0"), false, "patch pods/status, delete pods"},
		"replaced before it":       {"delete", apierrors.NewConflict(pods, "train-0", nil), false, "patch pods/status, delete pods"},
		"not marked":               {"patch", errBusy, true, "patch pods/status"},
		"not deleted":              {"delete", errBusy, true, "patch pods/status, delete pods"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(rank())
			answers(client, c.verb, c.answer)
			err := eviction.Evict(t.Context(), client, rank(), mark())
			if errors.Is(err, errBusy) != c.fails || err != nil && !strings.Contains(err.Error(), "train-0") {
				t.Errorf("evicted with %v", err)
			}
			if got := verbs(client); got != c.sends {
				t.Errorf("sent %s, want %s", got, c.sends)
			}
		})
	}
}

// A group that is evicted has no place any more, and what else its status says remains.
func TestMarkGroup_EvictedAndNotPlaced(t *testing.T) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "one", Generation: 2},
	}
	group.Status.Conditions = []metav1.Condition{{Type: "Queued", Status: metav1.ConditionTrue}}
	client := fake.NewClientset(group)
	if err := eviction.MarkGroup(t.Context(), client, group, mark()); err != nil {
		t.Fatal(err)
	}
	stored, err := client.SchedulingV1beta1().PodGroups("team-a").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]metav1.ConditionStatus)
	for _, c := range stored.Status.Conditions {
		got[c.Type] = c.Status
	}
	want := map[string]metav1.ConditionStatus{
		"Queued":                           metav1.ConditionTrue,
		schedulingv1beta1.DisruptionTarget: metav1.ConditionTrue,
		"lockstep.dev/Placed":              metav1.ConditionFalse,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	answers(client, "patch", apierrors.NewNotFound(schema.GroupResource{Resource: "podgroups"}, "train"))
	if err := eviction.MarkGroup(t.Context(), client, group, mark()); err != nil {
		t.Errorf("a group that is gone: %v", err)
	}
	answers(client, "patch", errBusy)
	if err := eviction.MarkGroup(t.Context(), client, group, mark()); !errors.Is(err, errBusy) {
		t.Errorf("a group that cannot be marked: %v", err)
	}
}

func TestByScheduler_ReasonsOfEvictions(t *testing.T) {
	const target, yes = corev1.DisruptionTarget, corev1.ConditionTrue
	for name, c := range map[string]struct {
		condition     corev1.PodCondition
		disrupted, by bool
	}{
		"running":              {corev1.PodCondition{Type: corev1.PodReady, Status: yes, Reason: "GangPreempted"}, false, false},
		"by Lockstep":          {corev1.PodCondition{Type: target, Status: yes, Reason: "GangPreempted"}, true, true},
		"by in-tree plugins":   {corev1.PodCondition{Type: target, Status: yes, Reason: corev1.PodReasonPreemptionByScheduler}, true, true},
		"by a drain":           {corev1.PodCondition{Type: target, Status: yes, Reason: "EvictionByEvictionAPI"}, true, false},
		"by a taint":           {corev1.PodCondition{Type: target, Status: yes, Reason: "DeletionByTaintManager"}, true, false},
		"no longer to be seen": {corev1.PodCondition{Type: target, Status: corev1.ConditionFalse, Reason: "GangPreempted"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := rank()
			pod.Status.Conditions = []corev1.PodCondition{c.condition}
			if disrupted, by := eviction.Disrupted(
				pod,
			), eviction.ByScheduler(
				pod,
			); disrupted != c.disrupted ||
				by != c.by {
				t.Errorf("disrupted %t, by a scheduler %t", disrupted, by)
			}
		})
	}
}
