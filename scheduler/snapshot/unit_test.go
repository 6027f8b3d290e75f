package snapshot_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// A pod that waited for an hour and has ten minutes has them from its start. Counted from its creation it would have
// ended long ago when it starts, and the place of the head would be looked for on its node.
func TestUnit_DeadlineCountsFromStart(t *testing.T) {
	created := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	started := metav1.NewTime(created.Add(time.Hour))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)},
		Spec:       corev1.PodSpec{ActiveDeadlineSeconds: new(int64(600)), NodeName: "n"},
	}
	unit := snapshot.Unit{Pods: []*corev1.Pod{pod}}
	if end := unit.End(); !end.IsZero() {
		t.Errorf("bound, but not started, it ends at %v; nobody knows that", end)
	}
	pod.Status.StartTime = &started
	if end := unit.End(); !end.Equal(started.Add(10 * time.Minute)) {
		t.Errorf("started at %v, it ends at %v", started, end)
	}
}
