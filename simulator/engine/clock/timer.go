package clock

import (
	"cmp"
	"container/heap"
	"time"
)

// timer is one that is due once, or every so often.
type timer struct {
	clock *Clock
	queue *queue
	// at is the time at which it is due; number decides between timers of one instant.
	at     time.Time
	number uint64
	// place is its index in the queue, out for one that is not in it.
	place  int
	every  time.Duration
	call   func()
	signal chan time.Time
}

const out = -1

// C returns the channel of the instant; nothing arrives from one that calls back.
func (t *timer) C() <-chan time.Time { return t.signal }

// Stop reports whether the timer had not fired yet.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.remove()
}

// Reset sets it anew, and reports whether it had not fired yet.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.remove()
	t.set(d)
	return was
}

func (t *timer) remove() bool {
	if t.place == out {
		return false
	}
	heap.Remove(t.queue, t.place)
	return true
}

func (t *timer) set(d time.Duration) {
	t.clock.made++
	t.number, t.at = t.clock.made, t.clock.now.Add(max(d, 0))
	heap.Push(t.queue, t)
}

// ticker hides the methods that a ticker does not have.
type ticker struct{ of *timer }

func (t ticker) C() <-chan time.Time { return t.of.C() }
func (t ticker) Stop()               { t.of.Stop() }

// queue is a heap of timers by instant, then number.
type queue []*timer

// Len is for package heap, as the others are.
func (q *queue) Len() int { return len(*q) }

func (q *queue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.number, b.number)) < 0
}

func (q *queue) Swap(i, j int) {
	all := *q
	all[i], all[j] = all[j], all[i]
	all[i].place, all[j].place = i, j
}

// Push is for package heap.
func (q *queue) Push(x any) {
	t, _ := x.(*timer) // nothing else is pushed
	t.place = len(*q)
	*q = append(*q, t)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q, t.place = (*q)[:last], out
	return t
}

func (q *queue) take() *timer {
	t, _ := heap.Pop(q).(*timer) // nothing else is in it
	return t
}
