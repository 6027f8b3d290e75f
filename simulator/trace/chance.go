package trace

// The streams of a seed, one for each thing that is drawn: what is drawn for one thing does not change another.
const (
	streamFragments uint64 = iota + 1
)
