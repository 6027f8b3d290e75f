package scenarios

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Queued returns a random scenario of n gangs of one to 32 whole nodes on 64 nodes of eight GPUs, which arrive as fast
// as these can run them, so that nearly all wait for hours. There is no preemption and no outage. told is the fraction
// of gangs that declare their longest run time, from 0 to 1. An error is a fault of this package.
func Queued(seed uint64, n int, told float64) (*scenario.Scenario, error) {
	f, err := fleet.Open("h100-64")
	if err != nil {
		return nil, fmt.Errorf("building queued scenario %d: %w", seed, err)
	}
	r := rand.New(rand.NewPCG(seed, streamQueued))
	t, nodes := trace.Trace{Name: fmt.Sprintf("queued-%d", seed), Synthetic: true}, 0.0
	for i := range n {
		count := queuedSizes()[r.IntN(len(queuedSizes()))]
		runs := time.Duration(math.Exp(logMedian+logDeviation*r.NormFloat64())) * time.Second
		j := trace.Job{
			ID: fmt.Sprintf("j%04d", i), Duration: max(runs, time.Minute),
			Podsets: []trace.Podset{{Count: count, GPUs: 8}},
		}
		if excess := []float64{1, 1, 1.5, 2}[r.IntN(4)]; r.Float64() < told {
			j.Estimate = time.Duration(excess * float64(j.Duration))
		}
		nodes += float64(count) * j.Duration.Hours()
		t.Jobs = append(t.Jobs, j)
	}
	span := nodes / float64(len(f.Nodes)) / float64(n) // between two gangs, in hours
	at := 0.0
	for i := range t.Jobs {
		at += r.ExpFloat64() * span
		t.Jobs[i].Submit = time.Duration(at * float64(time.Hour)).Truncate(time.Second)
	}
	s, err := importer.New(f, t, scenario.Options{Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("building queued scenario %d: %w", seed, err)
	}
	return s, nil
}

const (
	// streamQueued is the stream of the seed from which Queued draws.
	streamQueued = 25
	// Run times are lognormal, of a median of half an hour: most are short, a few take a day.
	logMedian    = 7.5
	logDeviation = 1.1
)

// queuedSizes returns the sizes of gangs, repeated in proportion to their frequency. The mean is 5.2 nodes.
func queuedSizes() []int { return []int{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 16, 32} }
