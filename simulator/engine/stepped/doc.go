// Package stepped is what it takes to step kube-scheduler through virtual time: informers that call its handlers in the caller's goroutine, a look
// into its queue, gates without which nothing happens beside its loop, and a recorder that records nothing. Whoever steps one has a clock
// that stands still until it is moved, and calls ScheduleOne as long as the queue is not empty.
package stepped
