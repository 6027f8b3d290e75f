package direct

import (
	"cmp"
	"container/heap"
)

// runs are those that go on.
type runs struct {
	// begun are those that ran from the beginning.
	begun []*run
	ends  ends
	// parting are those with members that leave alone.
	parting []*run
	// number counts all runs so far.
	number int
}

// ends is a heap of the runs that end by themselves, the next one first. Each run has its index in it.
type ends struct{ runs []*run }

func (e *ends) Len() int { return len(e.runs) }

func (e *ends) Less(i, j int) bool {
	a, b := e.runs[i], e.runs[j]
	return cmp.Or(a.ending().compare(b.ending()), cmp.Compare(a.number, b.number)) < 0
}

func (e *ends) Swap(i, j int) {
	e.runs[i], e.runs[j] = e.runs[j], e.runs[i]
	e.runs[i].at, e.runs[j].at = i, j
}

// Push is heap.Interface's.
func (e *ends) Push(x any) {
	if r, ok := x.(*run); ok {
		r.at = len(e.runs)
		e.runs = append(e.runs, r)
	}
}

// Pop is heap.Interface's.
func (e *ends) Pop() any {
	last := len(e.runs) - 1
	r := e.runs[last]
	e.runs = e.runs[:last]
	r.at = none
	return r
}

// first is the instant of the next end, Forever if there is none.
func (e *ends) first() instant {
	if len(e.runs) == 0 {
		return instant{second: Forever}
	}
	return e.runs[0].ending()
}

// take removes the run that ends next.
func (e *ends) take() *run {
	r := e.runs[0]
	heap.Pop(e)
	return r
}

func (e *ends) add(r *run) {
	r.at = none
	if r.ends != Forever {
		heap.Push(e, r)
	}
}

func (e *ends) remove(r *run) {
	if r.at != none {
		heap.Remove(e, r.at)
	}
}
