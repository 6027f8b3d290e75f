// Package timing gives the plugins their time and their goroutines beside the scheduling loop. A scheduler has the
// machine's clock and goroutines; a scheduler that is played in virtual time has a clock that is moved by hand, and
// does the work beside the loop when the loop stands still.
package timing

import (
	"time"

	"k8s.io/utils/clock"
)

// Timing belongs to one scheduler.
type Timing struct {
	// Clock may call back under a lock of its own.
	Clock clock.WithDelayedExecution
	// Beside has something done soon, but not before it returns: callers hold locks.
	Beside func(do func())
	// Gather is the time for which changes are gathered before entities are woken: a job that ends frees many nodes one
	// by one. 0 gathers until the loop stands still, for virtual time, in which all that happens at an instant has
	// happened then.
	Gather time.Duration
	// Settle is the time after which the scheduler's own handlers have surely seen the events that the plugins'
	// handlers saw. 0 is until the loop stands still, for virtual time, in which all handlers have seen them then.
	Settle time.Duration
	// Flush is the interval at which all that wait are evaluated whatever was seen, in case an event was missed. 0 is
	// never, for virtual time, in which none is.
	Flush time.Duration
}

// gather, settle and flush are those of a scheduler. Flushing is less than the five minutes after which the scheduling
// queue lets everything try.
const (
	gather = 50 * time.Millisecond
	settle = time.Second
	flush  = 4 * time.Minute
)

// With is a clock and goroutines.
func With(c clock.WithDelayedExecution) Timing {
	return Timing{Clock: c, Beside: func(do func()) { go do() }, Gather: gather, Settle: settle, Flush: flush}
}

// AfterFunc has something done beside the scheduling loop when the duration is over.
func (t Timing) AfterFunc(after time.Duration, do func()) {
	if after == 0 {
		t.Beside(do)
		return
	}
	t.Clock.AfterFunc(after, func() { t.Beside(do) })
}
