package snapshot

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// The fewest members of an elastic gang are its first ranks that stay, wherever they are; each other member is a unit
// of its own, whose eviction stops all.
func TestUnit_PartsOfAnElasticGang(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ranks, leaving, min, want string
	}{
		"as many as it needs":         {"0 1", "", "2", "ns/g[0 1]"},
		"more":                        {"3 0 2 1", "", "2", "ns/g[0 1] ns/g/p3[3] ns/g/p2[2]"},
		"one in the middle is gone":   {"0 2 3", "", "2", "ns/g[0 2] ns/g/p3[3]"},
		"one that it could need left": {"0 1 2", "1", "2", "ns/g[0 2] ns/g/p1[1]"},
		"too few stay":                {"0 1 2", "1 2", "2", "ns/g[0 1 2]"},
		"not elastic":                 {"0 1 2", "", "", "ns/g[0 1 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
			group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}
			if test.min != "" {
				group.Annotations = map[string]string{
					topology.AnnotationMinNodes: test.min,
					topology.AnnotationMaxNodes: "4",
				}
			}
			u := Unit{Name: "ns/g", Group: group}
			for i, rank := range strings.Fields(test.ranks) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "p" + rank, Labels: map[string]string{labelCompletionIndex: rank},
				}}
				if strings.Contains(test.leaving, rank) {
					pod.DeletionTimestamp = &metav1.Time{}
				}
				u.Pods, u.Holds = append(
					u.Pods,
					pod,
				), append(
					u.Holds,
					topology.Held{Node: i, Demand: topology.Capacity{1}},
				)
			}
			var got []string
			for _, part := range u.parts([]corev1.ResourceName{"gpu"}) {
				var ranks []string
				for _, pod := range InRankOrder(part.Pods) {
					ranks = append(ranks, pod.Labels[labelCompletionIndex])
				}
				got = append(got, fmt.Sprintf("%s%v", part.Name, ranks))
				if part.Of != "" && part.Of != u.Name || len(part.Holds) != len(part.Pods) {
					t.Errorf("%s is of %q and holds %v", part.Name, part.Of, part.Holds)
				}
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("the units are %s, want %s", text, test.want)
			}
			if whole := Wholes(
				u.parts([]corev1.ResourceName{"gpu"}),
			); len(whole) != 1 ||
				len(whole[0].Pods) != len(u.Pods) {
				t.Errorf("put together, the gang is %v", whole)
			}
		})
	}
}
