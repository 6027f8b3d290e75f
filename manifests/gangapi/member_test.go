package gangapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// A mark counts where neither the field nor the label names a group, the first mark of several, and a rank that the pod
// states itself stays.
func TestAdopt_Marks(t *testing.T) {
	marks := func(group string, rank *int) gangapi.Marks {
		return func(*corev1.Pod) (gangapi.Membership, bool) {
			return gangapi.Membership{Group: group, Rank: rank}, group != ""
		}
	}
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		field               string
		marks               []gangapi.Marks
		group, rank         string
	}{
		"no mark":                     {marks: []gangapi.Marks{marks("", nil)}},
		"a mark":                      {marks: []gangapi.Marks{marks("a", new(3))}, group: "a", rank: "3"},
		"a mark without a rank":       {marks: []gangapi.Marks{marks("a", nil)}, group: "a"},
		"the first of two":            {marks: []gangapi.Marks{marks("", nil), marks("a", nil), marks("b", new(1))}, group: "a"},
		"a rank that the pod states":  {annotations: map[string]string{gangapi.AnnotationRank: "7"}, marks: []gangapi.Marks{marks("a", new(3))}, group: "a", rank: "7"},
		"the label before the mark":   {labels: map[string]string{gangapi.Label: "own"}, marks: []gangapi.Marks{marks("a", new(3))}, group: "own"},
		"the field before the others": {field: "f", labels: map[string]string{gangapi.Label: "own"}, marks: []gangapi.Marks{marks("a", new(3))}, group: "f"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations}}
		if c.field != "" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &c.field}
		}
		gangapi.Adopt(pod, c.marks...)
		group := ""
		if of := pod.Spec.SchedulingGroup; of != nil {
			group = *of.PodGroupName
		}
		if rank := pod.Annotations[gangapi.AnnotationRank]; group != c.group || rank != c.rank {
			t.Errorf("%s: group %q and rank %q, want %q and %q", name, group, rank, c.group, c.rank)
		}
	}
}
