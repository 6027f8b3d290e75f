//go:build !race

package gangpreemption_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// An elastic gang starts with as many members as fit, gives those that a gang of a higher priority needs, and takes
// them back after a later gang has its nodes. The first rank stays all the time, and nothing reports that the gang was
// evicted.
func TestElasticGang_ShrinksAndGrows(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 6))
	elastic, ranks := schedulertest.ElasticGang("elastic", 2, 8)
	c.Create(t, elastic, ranks)
	c.WaitBound(t, ranks[:6]) // all that fit, and not two

	urgent, others := schedulertest.Gang("urgent", 3, "")
	schedulertest.SetPriority(urgent, others, 1_001_000)
	c.Create(t, urgent, others)
	c.WaitBound(t, others)
	reasons, gone := c.Evictions("elastic")
	if len(gone) != 3 || slices.Contains(gone, "elastic-0") || slices.Contains(gone, "elastic-1") {
		t.Fatalf("%v were evicted, for %v; want three that the gang can do without", gone, reasons)
	}
	group, err := c.SchedulingV1beta1().
		PodGroups(schedulertest.Namespace).
		Get(t.Context(), "elastic", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if meta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.DisruptionTarget) {
		t.Errorf("the group of a gang that goes on says that it was evicted: %+v", group.Status.Conditions)
	}

	var again []*corev1.Pod // its Job makes them anew
	for _, rank := range ranks {
		if slices.Contains(gone, rank.Name) {
			again = append(again, schedulertest.Recreated(rank))
		}
	}
	c.Create(t, again)
	small, pair := schedulertest.Gang("small", 2, "")
	c.Create(t, small, pair)
	c.WaitRejected(t, "small") // else the elastic gang may take all three nodes before the small one is known
	c.DeletePods(t, others)
	c.WaitBound(t, pair)
	growing := slices.Concat(again, ranks[6:])
	back := func() int {
		return len(
			slices.DeleteFunc(slices.Clone(growing), func(pod *corev1.Pod) bool { return c.NodeOf(pod.Name) == "" }),
		)
	}
	for end := time.Now().Add(10 * time.Second); back() == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(500 * time.Millisecond) // in which another member would return, too
	if n := back(); n != 1 {
		t.Errorf("%d members returned to the one node that is left", n)
	}
}
