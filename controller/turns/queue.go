// Package turns is the controller's work queue, in which namespaces take turns: ten thousand jobs of one tenant delay
// another's first by one job. Without turns, the tenant that submits most is served most.
package turns

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue hands out requests by priority, and within one namespace after namespace. It is safe for concurrent use.
// Priorities are those that controller-runtime gives: low ones to requests that only a restart adds.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	line *line
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*Queue)(nil)

// New makes the queue of a controller. The name is its label among the metrics of work queues; limiter is the backoff
// of failed requests.
func New(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) *Queue {
	waiting := newLine()
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: waiting})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: ready})
	return &Queue{
		workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying}),
		waiting,
	}
}

// AddWithOpts adds requests at a priority (0 if it has none): after a time, after the time that their failures ask for,
// or at once. Of a request that is added twice, the highest priority counts.
func (q *Queue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	var priority int
	if options.Priority != nil {
		priority = *options.Priority
	}
	for _, request := range requests {
		q.line.want(request, priority)
		switch {
		case options.After > 0:
			q.TypedRateLimitingInterface.AddAfter(request, options.After)
		case options.RateLimited:
			q.TypedRateLimitingInterface.AddRateLimited(request)
		default:
			q.TypedRateLimitingInterface.Add(request)
		}
	}
}

// Add adds a request at priority 0.
func (q *Queue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// AddAfter adds a request at priority 0 after a time.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited adds a request at priority 0 after the time that its failures ask for.
func (q *Queue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// GetWithPriority waits for the next request, and returns the priority at which it stood; shutdown is true when there
// will be no more.
func (q *Queue) GetWithPriority() (reconcile.Request, int, bool) {
	request, shutdown := q.TypedRateLimitingInterface.Get()
	if shutdown {
		return request, 0, true
	}
	return request, q.line.tookAt(request), false
}

// Get waits for the next request.
func (q *Queue) Get() (reconcile.Request, bool) {
	request, _, shutdown := q.GetWithPriority()
	return request, shutdown
}
