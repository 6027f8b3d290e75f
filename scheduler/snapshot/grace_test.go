package snapshot_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// A tenant deletes his pod with a grace period of years, or gives it one: it runs on, and does not count as one that
// leaves free of charge, for whose room others wait.
func TestContender_ALongGraceIsNoDeparture(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		own, given int64
		leaves     bool
	}{
		"deleted":                        {30, 30, true},
		"deleted, and ends in an hour":   {3600, 3600, true},
		"deleted with a grace of years":  {30, 10 * 365 * 86400, false},
		"with an own grace of all times": {math.MaxInt64, math.MaxInt64, false},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:              "p",
				Namespace:         "a",
				CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
				DeletionTimestamp: new(
					metav1.NewTime(now.Add(time.Duration(min(c.given, 1<<32)) * time.Second)),
				),
				DeletionGracePeriodSeconds: &c.given,
			},
			Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &c.own},
		}
		u := snapshot.Unit{Name: "a/p", Pods: []*corev1.Pod{pod}}.Contender(snapshot.Reading{})
		if u.Leaving != c.leaves || u.Grace > 3600 || u.Grace < 0 {
			t.Errorf("%s: leaving %t, grace %d s", name, u.Leaving, u.Grace)
		}
		if got := u.End.Certainty == contention.Certain; got != c.leaves {
			t.Errorf("%s: its end is certain: %t", name, got)
		}
	}
}

// A tenant may have all pods of his gang name a DaemonSet of his own: the gang can be evicted all the same.
func TestContender_NoGangIsProtectedByADaemonSet(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: new(true)},
		}},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
	alone := snapshot.Unit{Name: "a/p", Pods: []*corev1.Pod{pod}}
	if alone.Contender(snapshot.Reading{}).Preemptible {
		t.Error("a pod of a DaemonSet would be evicted, and return at once")
	}
	gang := alone
	gang.Group = &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "a"}}
	if !gang.Contender(snapshot.Reading{}).Preemptible {
		t.Error("a gang of such pods is evicted by nothing")
	}
}
