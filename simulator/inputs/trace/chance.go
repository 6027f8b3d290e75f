package trace

import "math/rand/v2"

// The streams of a seed, one for each kind of draw: the draws of one kind do not change another.
const (
	streamFragments uint64 = iota + 1
	streamDurations
	streamSizes
	streamArrivals
	streamWeeks
	streamStarving
	streamService
	streamGangs
	streamSweeps
)

func chance(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream))
}
