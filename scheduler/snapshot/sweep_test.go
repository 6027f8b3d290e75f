package snapshot_test

import (
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

func TestSweepOf_ReadsLabelAndLimit(t *testing.T) {
	for limit, want := range map[string]int{"4": 4, "": 0, "0": 0, "-3": 0, "four": 0, "99999999999": 0} {
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "vision", Labels: map[string]string{"lockstep.dev/sweep": "lr"},
			Annotations: map[string]string{"lockstep.dev/sweep-parallelism": limit},
		}}
		if got := snapshot.SweepOf(group); got != (contention.Sweep{Name: "vision/lr", Limit: want}) {
			t.Errorf("limit %q: %+v", limit, got)
		}
	}
}

func TestSweepOf_IsNoneWithoutTheLabel(t *testing.T) {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{"lockstep.dev/sweep-parallelism": "4"},
	}}
	if got := snapshot.SweepOf(group); got != (contention.Sweep{}) {
		t.Errorf("%+v", got)
	}
	if got := snapshot.SweepOf(nil); got != (contention.Sweep{}) {
		t.Errorf("no group: %+v", got)
	}
}
