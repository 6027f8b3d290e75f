package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The queue is told for whom a bound or deleted pod matters. Ordinary pods that wait must be among them: nothing else
// would wake them for five minutes.
func TestOrdinaryPodsAreWokenByOthers(t *testing.T) {
	c := newCluster(t, cliques(1, 2))
	group, members := gang("full", 2, "clique")
	c.add(t, group, members)
	c.waitBound(t, members)
	parked, waiting := gang("parked", 3, "clique") // more than there ever is: nothing is reserved for it
	c.add(t, parked, waiting)
	c.waitRejected(t, "parked")

	// One wants room, the other the company of the first.
	first, second := pod("first", "4"), pod("second", "0")
	first.Labels = map[string]string{"app": "first"}
	second.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "first"}},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
	c.add(t, first, second, pod("marker", "0"))
	c.waitBound(t, []*corev1.Pod{pod("marker", "0")}) // by now both were tried
	c.end(t, members[:1])
	at := c.waitBound(t, []*corev1.Pod{first, second})
	if at[0] != at[1] {
		t.Errorf("the second is on %s, the first on %s", at[1], at[0])
	}
	for _, p := range waiting {
		if at := c.nodeOf(p.Name); at != "" {
			t.Errorf("%s of the gang that does not fit is on %s", p.Name, at)
		}
	}
}
