package clock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine/clock"
)

func begin() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// Timers fire by instant, those of one instant in the order in which they were made, each at its own instant, and those
// that are made on the way too.
func TestAfterFunc_FiresInOrder(t *testing.T) {
	c := clock.New(begin())
	var said []string
	say := func(what string) func() {
		return func() { said = append(said, fmt.Sprint(what, "@", c.Since(begin()))) }
	}
	c.AfterFunc(3*time.Second, say("late"))
	c.AfterFunc(time.Second, func() {
		say("first")()
		c.AfterFunc(time.Second, say("made on the way"))
		c.AfterFunc(0, say("at once"))
	})
	c.AfterFunc(time.Second, say("second"))
	c.AfterFunc(time.Second, say("stopped")).Stop()
	reset := c.AfterFunc(time.Second, say("set anew"))
	reset.Reset(2 * time.Second)
	if next, ok := c.Next(); !ok || !next.Equal(begin().Add(time.Second)) {
		t.Errorf("the next is due at %v, %v", next, ok)
	}
	c.Advance(begin().Add(2500 * time.Millisecond))
	want := []string{"first@1s", "second@1s", "at once@1s", "set anew@2s", "made on the way@2s"}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	if c.Since(begin()) != 2500*time.Millisecond {
		t.Errorf("the clock shows %v", c.Since(begin()))
	}
}

func TestAfter_AndTickerFireAtTheirInstants(t *testing.T) {
	c := clock.New(begin())
	once, often := c.After(time.Second), c.NewTicker(time.Second)
	for i := range 3 {
		c.Advance(begin().Add(time.Duration(i+1) * time.Second))
		if at := <-often.C(); at.Sub(begin()) != time.Duration(i+1)*time.Second {
			t.Errorf("tick %d came at %v", i, at)
		}
	}
	if at := <-once; at.Sub(begin()) != time.Second {
		t.Errorf("the timer went off at %v", at)
	}
	often.Stop()
	c.Advance(begin().Add(time.Hour))
	if len(often.C()) > 0 {
		t.Error("a stopped ticker ticks")
	}
	if _, ok := c.Next(); ok {
		t.Error("a channel is to be waited for")
	}
}

// A nudge moves the clock, and timers that it passes fire with the next advance.
func TestNudge(t *testing.T) {
	c := clock.New(begin())
	called := 0
	c.AfterFunc(time.Nanosecond, func() { called++ })
	c.Nudge()
	c.Nudge()
	c.Advance(begin())
	if called != 0 {
		t.Error("it went off at an instant that was before it was made")
	}
	c.Advance(c.Now())
	if called != 1 || c.Since(begin()) != 2 {
		t.Errorf("it went off %d times, at %v", called, c.Since(begin()))
	}
}
