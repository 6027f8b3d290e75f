// Package clock is the time of a replay: it stands still until it is moved. Due timers and calls then run one after
// another, in the goroutine that moves it.
package clock

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is a clock that is moved by hand. It may be read, and timers may be made, by any goroutine; one moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
	// made counts timers: of those that are due at one instant the first one made is the first.
	made uint64
	// calls are timers that call back, signals those with a channel that is waited for.
	calls, signals queue
}

var _ clock.WithTickerAndDelayedExecution = (*Clock)(nil)

// New is a clock that shows an instant.
func New(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since returns the time from an instant to now.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Next returns the time at which the next call back is due; false if none is. Channels do not count: a goroutine at one
// is not waited for.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 {
		return time.Time{}, false
	}
	return c.calls[0].at, true
}

// Due reports whether a call back or a signal is due by an instant.
func (c *Clock) Due(by time.Time) bool {
	at, ok := c.Soonest()
	return ok && !at.After(by)
}

// Soonest returns the time at which the next call back or signal is due; false if none is.
func (c *Clock) Soonest() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first time.Time
	for _, q := range []queue{c.calls, c.signals} {
		if len(q) > 0 && (first.IsZero() || q[0].at.Before(first)) {
			first = q[0].at
		}
	}
	return first, !first.IsZero()
}

// Advance moves the clock to an instant, and over all timers on the way. Call backs see the instant for which they were
// made, and may make timers that are due on the way too. An instant that has passed moves nothing.
func (c *Clock) Advance(to time.Time) {
	for {
		c.mu.Lock()
		var next *timer
		until := to
		if len(c.calls) > 0 && !c.calls[0].at.After(to) {
			next = c.calls.take()
			until = next.at
		}
		if until.After(c.now) { // a nudge may have moved it over a timer
			c.now = until
		}
		c.ring()
		c.mu.Unlock()
		if next == nil {
			return
		}
		next.call()
	}
}

// ring signals all waiters whose instant has passed.
func (c *Clock) ring() {
	for len(c.signals) > 0 && !c.signals[0].at.After(c.now) {
		t := c.signals[0]
		select {
		case t.signal <- t.at:
		default: // as with the machine's tickers, a slow receiver misses some ticks
		}
		if t.every <= 0 {
			c.signals.take()
			continue
		}
		t.at = t.at.Add(t.every)
		heap.Fix(&c.signals, 0)
	}
}

// Nudge moves the clock by a nanosecond without looking at timers, so that consecutive events at one instant have
// instants of their own.
func (c *Clock) Nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Nanosecond)
}

// AfterFunc calls back when the clock has been moved so far, in the goroutine that moves it.
func (c *Clock) AfterFunc(d time.Duration, do func()) clock.Timer {
	return c.add(&c.calls, &timer{call: do, signal: make(chan time.Time, 1)}, d)
}

// NewTimer is a timer with a channel.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	return c.add(&c.signals, &timer{signal: make(chan time.Time, 1)}, d)
}

// NewTicker is a ticker; the duration is more than 0.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	return ticker{c.add(&c.signals, &timer{signal: make(chan time.Time, 1), every: d}, d)}
}

// After is the channel of a timer.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Tick is the channel of a ticker.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

// Sleep waits until another goroutine has moved the clock so far.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

func (c *Clock) add(to *queue, t *timer, d time.Duration) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.clock, t.queue = c, to
	t.set(d)
	return t
}
