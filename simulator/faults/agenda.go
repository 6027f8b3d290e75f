package faults

import (
	"cmp"
	"container/heap"
	"time"
)

// entry is something that is due.
type entry struct {
	at     time.Time
	number int
	do     func()
}

// agenda holds the due entries, by instant, then by when they were written down.
type agenda struct {
	entries []entry
	made    int
}

func (a *agenda) add(at time.Time, do func()) {
	a.made++
	heap.Push(a, entry{at, a.made, do})
}

// take takes the next entry that is due by an instant.
func (a *agenda) take(by time.Time) (func(), bool) {
	if len(a.entries) == 0 || a.entries[0].at.After(by) {
		return nil, false
	}
	e, _ := heap.Pop(a).(entry) // nothing else is in it
	return e.do, true
}

// Len is for package heap, as the others are.
func (a *agenda) Len() int { return len(a.entries) }

func (a *agenda) Less(i, j int) bool {
	x, y := a.entries[i], a.entries[j]
	return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.number, y.number)) < 0
}

func (a *agenda) Swap(i, j int) { a.entries[i], a.entries[j] = a.entries[j], a.entries[i] }

// Push is for package heap.
func (a *agenda) Push(x any) {
	e, _ := x.(entry) // nothing else is pushed
	a.entries = append(a.entries, e)
}

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := len(a.entries) - 1
	e := a.entries[last]
	a.entries = a.entries[:last]
	return e
}
