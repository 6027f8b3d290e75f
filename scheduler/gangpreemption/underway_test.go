package gangpreemption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

func TestAnEvictionIsBegunOnce(t *testing.T) {
	var u underway
	now := time.Unix(1000, 0)
	pod := &corev1.Pod{}
	pod.UID = types.UID("pod")
	unit := snapshot.Unit{Pods: []*corev1.Pod{pod}}
	if u.holds(unit) {
		t.Error("nobody is leaving yet")
	}
	if !u.begin("pod", now) || u.begin("pod", now.Add(time.Hour)) {
		t.Error("it is to be begun once, however long it takes")
	}
	if !u.begin("other", now) {
		t.Error("another pod is another eviction")
	}
	if !u.holds(unit) {
		t.Error("one of its pods is being evicted")
	}
	u.end("pod", now)
	if u.begin("pod", now.Add(pause-time.Millisecond)) {
		t.Error("the scheduler may not have heard of the deletion yet")
	}
	if !u.begin("pod", now.Add(pause)) {
		t.Error("it is still there, so the eviction failed")
	}
	u.end("pod", now)
	u.end("other", now)
	if u.begin("third", now.Add(pause)); len(u.pods) != 1 {
		t.Errorf("of evictions that are over %d are remembered", len(u.pods)-1)
	}
}
