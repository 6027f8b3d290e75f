package forecast

import (
	"container/heap"
	"math"
)

// Never is the wait of a workload that no expected end lets start.
const Never = math.MaxInt64

// Work holds accelerators for a time.
type Work struct {
	// Accelerators is the number that it holds.
	Accelerators int64
	// Seconds is the run time of waiting work, or the remaining one of running work.
	Seconds int64
}

// Backlog is the work that has to end before a place is free, counted in accelerators: which nodes they are on is left
// out.
type Backlog struct {
	// Free is the number of accelerators that are free.
	Free int64
	// Running is the running work, Ahead the work that waits before the place, in the order in which it starts.
	Running, Ahead []Work
}

// Wait returns the seconds until so many accelerators are free, if the workloads ahead start in their order, each as
// soon as it can, and none arrives; Never if they are more than the fleet has.
func (b *Backlog) Wait(accelerators int64) int64 {
	ends := make(ending, 0, len(b.Running)+len(b.Ahead))
	for _, w := range b.Running {
		ends = append(ends, w)
	}
	heap.Init(&ends)
	now, free := int64(0), b.Free
	until := func(n int64) bool {
		for free < n && len(ends) > 0 {
			first, _ := heap.Pop(&ends).(Work)
			now, free = max(now, first.Seconds), free+first.Accelerators
		}
		return free >= n
	}
	for _, w := range b.Ahead {
		if until(w.Accelerators) {
			free -= w.Accelerators
			heap.Push(&ends, Work{w.Accelerators, now + w.Seconds})
		}
	}
	if until(accelerators) {
		return now
	}
	return Never
}

// ending is a heap of work by its end.
type ending []Work

// Len implements heap.Interface.
func (e *ending) Len() int { return len(*e) }

// Less implements heap.Interface.
func (e *ending) Less(i, j int) bool { return (*e)[i].Seconds < (*e)[j].Seconds }

// Swap implements heap.Interface.
func (e *ending) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }

// Push implements heap.Interface.
func (e *ending) Push(x any) {
	w, _ := x.(Work)
	*e = append(*e, w)
}

// Pop implements heap.Interface.
func (e *ending) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
