package stepped

import (
	"errors"
	"reflect"
	"time"
	_ "unsafe" // for linkname

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/heap"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The parts that kube-scheduler does not export are all in this file:
//
//   - whether its queue is empty. Pop blocks when it is, and the public lists of pods take time that grows with them, at every
//     step; so the length of its heaps is read by reflection.
//   - the work that its two goroutines do by the machine's clock: return pods whose backoff has ended, and pods that
//     were left behind. They are not started; the functions that they call are called here instead, by their link
//     names.
//
// TestQueue_IsAsItWas fails when any of this differs from the release that go.mod names.

// Queue is the scheduling queue of a scheduler that is stepped, looked into.
type Queue struct {
	of *internalqueue.PriorityQueue
	// active are those to evaluate now, pausing and failed those that return when their backoff is over.
	active, pausing, failed *heap.Heap[framework.QueuedEntityInfo]
}

//go:linkname flushPaused k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushPaused(q *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushLeft k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulableEntitiesLeftover
func flushLeft(q *internalqueue.PriorityQueue, logger klog.Logger)

var errInternals = errors.New(
	"kube-scheduler's queue is not built as in 1.37.2: see package stepped")

// look finds the parts of a scheduling queue.
func look(q internalqueue.SchedulingQueue) (Queue, error) {
	of, ok := q.(*internalqueue.PriorityQueue)
	if !ok {
		return Queue{}, errInternals
	}
	out := Queue{of: of}
	for _, part := range []struct {
		in, name string
		heap     **heap.Heap[framework.QueuedEntityInfo]
	}{
		{"activeQ", "queue", &out.active},
		{"backoffQ", "entityBackoffQ", &out.pausing},
		{"backoffQ", "entityErrorBackoffQ", &out.failed},
	} {
		field := reflect.ValueOf(of).Elem().FieldByName(part.in)
		if !field.IsValid() || field.Kind() != reflect.Interface || field.Elem().Kind() != reflect.Pointer {
			return Queue{}, errInternals
		}
		field = field.Elem().Elem().FieldByName(part.name)
		if !field.IsValid() || field.Type() != reflect.TypeFor[*heap.Heap[framework.QueuedEntityInfo]]() {
			return Queue{}, errInternals
		}
		*part.heap = (*heap.Heap[framework.QueuedEntityInfo])(field.UnsafePointer())
	}
	return out, nil
}

// FlushPaused brings back those whose pause is over.
func (q Queue) FlushPaused(logger klog.Logger) { flushPaused(q.of, logger) }

// FlushLeft returns entities that have waited for no reason for too long.
func (q Queue) FlushLeft(logger klog.Logger) { flushLeft(q.of, logger) }

// IsEmpty reports whether Pop would block.
func (q Queue) IsEmpty() bool { return q.active.Len()+q.pausing.Len() == 0 }

// Next returns the earliest end of a pause; false if no entity pauses. Pauses end with whole seconds, and an entity
// that pauses until one is back with the one after.
func (q Queue) Next(now time.Time) (time.Time, bool) {
	var first time.Time
	for _, h := range []*heap.Heap[framework.QueuedEntityInfo]{q.pausing, q.failed} {
		entity, ok := h.Peek()
		if !ok {
			continue
		}
		at := entity.GetBackoffExpiration()
		if at.Before(now) { // also that of one for which it was not worked out yet
			at = now
		}
		if at = at.Truncate(time.Second).Add(time.Second); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, !first.IsZero()
}
