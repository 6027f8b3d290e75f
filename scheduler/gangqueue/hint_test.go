//go:build !race

package gangqueue_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// Pods in no gang that were refused are tried again when a pod leaves, although the events of bound pods name only
// those that were refused.
func TestGangQueue_RefusedPodIsTriedWhenAPodLeaves(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 2))
	first := []*corev1.Pod{schedulertest.Pod("a", "4"), schedulertest.Pod("b", "4")}
	c.Create(t, first)
	c.WaitBound(t, first)
	waiting := []*corev1.Pod{schedulertest.Pod("c", "4"), schedulertest.Pod("d", "2"), schedulertest.Pod("e", "2")}
	c.Create(t, waiting)
	time.Sleep(200 * time.Millisecond) // all have been refused
	c.DeletePods(t, first)
	c.WaitBoundFor(t, waiting, 5*time.Second)
}

// The hint names the pods for which a bound or deleted pod matters. Ordinary pods that wait must be among them: nothing
// else would wake them for five minutes.
func TestQueueingHint_WakesOrdinaryPods(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 2))
	group, members := schedulertest.Gang("full", 2, "clique")
	c.Create(t, group, members)
	c.WaitBound(t, members)
	parked, waiting := schedulertest.Gang("parked", 3, "clique") // more than there ever is: nothing is reserved for it
	c.Create(t, parked, waiting)
	c.WaitRejected(t, "parked")

	// One wants room, the other the company of the first.
	first, second := schedulertest.Pod("first", "4"), schedulertest.Pod("second", "0")
	first.Labels = map[string]string{"app": "first"}
	second.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "first"}},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
	c.Create(t, first, second, schedulertest.Pod("marker", "0"))
	c.WaitBound(t, []*corev1.Pod{schedulertest.Pod("marker", "0")}) // by now both were tried
	c.DeletePods(
		t,
		members,
	) // all of them: the place of one would be reserved for it
	at := c.WaitBound(t, []*corev1.Pod{first, second})
	if at[0] != at[1] {
		t.Errorf("the second is on %s, the first on %s", at[1], at[0])
	}
	for _, p := range waiting {
		if at := c.NodeOf(p.Name); at != "" {
			t.Errorf("%s of the gang that does not fit is on %s", p.Name, at)
		}
	}
}
