package direct

import "container/heap"

// backlog is the jobs that are to come, and those that wait.
type backlog struct {
	// order holds all jobs by rank, their place in the queue when they arrive.
	order []int
	// arrivals holds the jobs that have not arrived yet, the next one first.
	arrivals []int
	// queued is the number of the machine's entities.
	queued int
	// waiting is the number of waiting jobs.
	waiting int
	// front finds the first of the waiting jobs.
	front ranks
	// came holds the ranks of the jobs that began to wait at this instant.
	came []int
}

// ranks is a heap of the jobs that wait, by rank, with some that do not wait any more.
type ranks []int

func (r *ranks) Len() int { return len(*r) }

func (r *ranks) Less(i, j int) bool { return (*r)[i] < (*r)[j] }

func (r *ranks) Swap(i, j int) { (*r)[i], (*r)[j] = (*r)[j], (*r)[i] }

// Push is heap.Interface's.
func (r *ranks) Push(x any) {
	if rank, ok := x.(int); ok {
		*r = append(*r, rank)
	}
}

// Pop is heap.Interface's.
func (r *ranks) Pop() any {
	last := len(*r) - 1
	rank := (*r)[last]
	*r = (*r)[:last]
	return rank
}

func (r *ranks) first() int { return (*r)[0] }

func (r *ranks) add(rank int) { heap.Push(r, rank) }

func (r *ranks) drop() { heap.Pop(r) }
