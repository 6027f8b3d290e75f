package direct

import (
	"cmp"
	"container/heap"
)

// ends are the runs that end by themselves, the next one first: a heap (container/heap) that knows where each run is.
type ends struct{ runs []*run }

func (e *ends) Len() int { return len(e.runs) }

func (e *ends) Less(i, j int) bool {
	a, b := e.runs[i], e.runs[j]
	return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.number, b.number)) < 0
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
	r.at = nobody
	return r
}

// first is the instant of the next end, Forever if there is none.
func (e *ends) first() int64 {
	if len(e.runs) == 0 {
		return Forever
	}
	return e.runs[0].ends
}

// take removes the run that ends next.
func (e *ends) take() *run {
	r := e.runs[0]
	heap.Pop(e)
	return r
}

func (e *ends) add(r *run) {
	r.at = nobody
	if r.ends != Forever {
		heap.Push(e, r)
	}
}

func (e *ends) remove(r *run) {
	if r.at != nobody {
		heap.Remove(e, r.at)
	}
}
