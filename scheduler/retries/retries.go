// Package retries has the backoff of the scheduler's work queues.
package retries

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The delays before an item's first and last attempts; each is twice the one before.
const (
	first   = 5 * time.Millisecond
	longest = 5 * time.Minute
)

// Limiter returns the backoff of a work queue whose keys are namespace/name: that of each item alone. With a rate for
// all items together, ten thousand objects of one tenant that fail would delay the next attempt for another's by a
// quarter of an hour.
func Limiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](first, longest)
}
