package gangpreemption_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/gangpreemption"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

func TestUnderway_EvictionBeginsOnce(t *testing.T) {
	var u gangpreemption.Underway
	now := time.Unix(1000, 0)
	pod := &corev1.Pod{}
	pod.UID = types.UID("pod")
	unit := snapshot.Unit{Pods: []*corev1.Pod{pod}}
	if u.Holds(unit) {
		t.Error("nobody is leaving yet")
	}
	if !u.Begin("pod", now) || u.Begin("pod", now.Add(time.Hour)) {
		t.Error("it is to be begun once, however long it takes")
	}
	if !u.Begin("other", now) {
		t.Error("another pod is another eviction")
	}
	if !u.Holds(unit) {
		t.Error("one of its pods is being evicted")
	}
	u.End("pod", now)
	if u.Begin("pod", now.Add(gangpreemption.Pause-time.Millisecond)) {
		t.Error("the scheduler may not have heard of the deletion yet")
	}
	if !u.Begin("pod", now.Add(gangpreemption.Pause)) {
		t.Error("it is still there, so the eviction failed")
	}
	u.End("pod", now)
	u.End("other", now)
	if u.Begin("third", now.Add(gangpreemption.Pause)); u.Len() != 1 {
		t.Errorf("of evictions that are over %d are remembered", u.Len()-1)
	}
}
