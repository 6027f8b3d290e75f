package gangqueue

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

const (
	// quiet is the time without new pods after which all pods that existed at the start are assumed to be in the queue.
	// Our handler has received all of them by then; the scheduler's own, which fills the queue, does not report its
	// progress.
	quiet = 250 * time.Millisecond
	// longest bounds the wait for a quiet moment: where pods are created all the time there is none, nor a right order.
	longest = 5 * time.Second
)

// begin admits pods to the queue when the pods bound before the scheduler's start are known. A gang that the last
// scheduler left torn is not complete before that, and pods admitted earlier would take the rest of its nodes. The
// other pods must all be in the queue, or the first one to arrive would not be the one that waits longest.
func (q *GangQueue) begin(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), q.seen) {
		return
	}
	q.gangs.mu.Lock()
	torn := len(q.gangs.checking) > 0
	q.gangs.mu.Unlock()
	if torn {
		q.settled(func() { q.releaseWhenQuiet(0, longest) }) // as Recheck
		return
	}
	q.releaseWhenQuiet(0, longest)
}

// releaseWhenQuiet checks repeatedly whether more pods have arrived than before, and releases all if none has.
func (q *GangQueue) releaseWhenQuiet(before int, left time.Duration) {
	q.gangs.mu.Lock()
	arrivals := q.gangs.arrivals
	q.gangs.mu.Unlock()
	if left <= 0 || arrivals > 0 && arrivals == before {
		q.release()
		return
	}
	if arrivals == 0 { // nothing waits for us
		left = min(left, quiet)
	}
	q.clock.AfterFunc(quiet, func() { q.releaseWhenQuiet(arrivals, left-quiet) })
}

// release activates all at once, so that the queue's order decides.
func (q *GangQueue) release() {
	q.gangs.mu.Lock()
	early := q.gangs.early
	q.gangs.starting, q.gangs.early = false, nil
	q.gangs.mu.Unlock()
	pods := make(map[string]*corev1.Pod, len(early))
	for key, pod := range early {
		if group, ok := snapshot.GroupOf(pod); ok {
			q.openIfComplete(group)
			if pod = q.anyWaiting(group); pod == nil { // the pod that arrived may be deleted
				continue
			}
		}
		pods[key.String()] = pod
	}
	q.handle.Activate(klog.Background(), pods)
}

// holds gates a pod while the scheduler starts.
func (q *GangQueue) holds(key types.NamespacedName, pod *corev1.Pod) bool {
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	if q.gangs.starting {
		if key.Name == "" {
			key = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "/"}
		}
		q.gangs.early[key] = pod
		q.gangs.arrivals++
	}
	return q.gangs.starting
}
