package statusserver

// schedule is a heap of jobs, the one that is due first on top. It implements heap.Interface.
type schedule []*reporting

func (s *schedule) Len() int           { return len(*s) }
func (s *schedule) Less(i, j int) bool { return (*s)[i].due.Before((*s)[j].due) }

func (s *schedule) Swap(i, j int) {
	jobs := *s
	jobs[i], jobs[j] = jobs[j], jobs[i]
	jobs[i].place, jobs[j].place = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	entry, ok := x.(*reporting)
	if !ok {
		return
	}
	entry.place = len(*s)
	*s = append(*s, entry)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	entry := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	entry.place = -1
	return entry
}
