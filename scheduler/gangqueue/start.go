package gangqueue

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// begin lets pods into the queue when what was bound before the scheduler's start is known. A gang that the last
// scheduler left torn is not complete before that, and who came before it would take the rest of its nodes.
func (q *GangQueue) begin(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), q.seen) {
		return
	}
	q.mu.Lock()
	torn := len(q.checking) > 0
	q.mu.Unlock()
	if !torn {
		q.release()
		return
	}
	q.clock.AfterFunc(settle, q.release) // as Recheck: the scheduler's own handlers may see it after ours
}

// release activates all at once, so that the queue's order decides.
func (q *GangQueue) release() {
	q.mu.Lock()
	early := q.early
	q.starting, q.early = false, nil
	q.mu.Unlock()
	pods := make(map[string]*corev1.Pod, len(early))
	for key, pod := range early {
		if group, ok := snapshot.GroupOf(pod); ok {
			q.openIfComplete(group)
			if pod = q.anyWaiting(group); pod == nil { // the one that came may be gone
				continue
			}
		}
		pods[key.String()] = pod
	}
	q.handle.Activate(klog.Background(), pods)
}

// holds keeps a pod while the scheduler starts.
func (q *GangQueue) holds(key types.NamespacedName, pod *corev1.Pod) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.starting {
		if key.Name == "" {
			key = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "/"}
		}
		q.early[key] = pod
	}
	return q.starting
}
