// Package stepped makes a kube-scheduler that is stepped through virtual time. Its informers call handlers in the
// caller's goroutine, its queue can be looked into, its feature gates avoid work in other goroutines, and its recorder
// drops Events. The caller has a clock that stands still until it is moved, and calls ScheduleOne as long as the queue
// is not empty.
package stepped
