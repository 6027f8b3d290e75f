package trace

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The numbers of Sweeps.
const (
	sweepsNodes = 64
	// sweepTrials counts the trials of a sweep, sweepParallelism bounds those that run at a time.
	sweepTrials, sweepParallelism = 64, 8
	// sweepEpochs counts the epochs of a trial that is not stopped.
	sweepEpochs = 40
	// sweepsOthers counts the jobs that other tenants submit, over sweepsHours.
	sweepsOthers, sweepsHours = 360, 24
)

// Sweeps is made for a fleet of 64 nodes of eight GPUs. Four tenants run a sweep each: 64 trials of one or two nodes,
// which a tuner creates at once; eight of them may run at a time. Two sweeps are stopped early by the median of earlier
// trials (Golovin et al., "Google Vizier", KDD '17, section 3.2.2), two by the rungs of ASHA in its stopping variant
// (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys '20, algorithm 2; reduction factor 3,
// first rung after two epochs). Sixteen other tenants submit 360 jobs of one to eight nodes within a day. No job states
// its run time.
//
// A trial's loss falls as a hyperbola to a level of its own, with noise, both by the seed. The rules judge the trials
// in the order of their numbers, as if each knew the curves of those before it: so a trial is as long whatever
// scheduler plays it, and comparisons are paired. A tuner that runs beside the trials knows other curves at other
// times.
func Sweeps(seed uint64) Trace {
	r := chance(seed, streamSweeps)
	t := Trace{
		Name: "sweeps",
		Source: fmt.Sprintf(
			"made for %d nodes of %d GPUs: four sweeps of %d trials, stopped early by medians or rungs, and %d jobs of others within %d h",
			sweepsNodes,
			gpusPerNode,
			sweepTrials,
			sweepsOthers,
			sweepsHours,
		),
		Synthetic: true,
	}
	for i := range 4 {
		s := sweepOf{
			name: fmt.Sprintf("sweep-%d", i+1), tenant: fmt.Sprintf("tuner-%d", i+1), nodes: 1 + i%2,
			submit: time.Duration(2+4*i) * time.Hour, stops: stopsByMedian,
		}
		if i >= 2 {
			s.stops = stopsByRungs
		}
		t.Jobs = append(t.Jobs, s.trials(r)...)
	}
	sizes := []int{1, 1, 1, 1, 1, 1, 2, 2, 4, 8}
	for i := range sweepsOthers {
		t.Jobs = append(t.Jobs, Job{
			ID: fmt.Sprintf("job-%04d", i+1), Tenant: fmt.Sprintf("team-%02d", r.IntN(serviceTeams-4)+1),
			Submit:   time.Duration(r.Int64N(sweepsHours*3600)) * time.Second,
			Duration: time.Duration(20*60+r.Int64N(160*60)) * time.Second,
			Podsets:  gang(sizes[r.IntN(len(sizes))] * gpusPerNode),
		})
	}
	return t.sorted()
}

// sweepOf is one sweep.
type sweepOf struct {
	name, tenant string
	// nodes counts the nodes of each trial.
	nodes  int
	submit time.Duration
	// stops returns the epoch after which the last of the curves is stopped, 0 for never. The others are cut where they
	// were stopped.
	stops func(curves [][]int64) int
}

// trials returns the trials of a sweep, in the order of their numbers.
func (s sweepOf) trials(r *rand.Rand) []Job {
	var out []Job
	var curves [][]int64
	epoch := time.Duration(240+r.Int64N(120)) * time.Second
	for i := range sweepTrials {
		curves = append(curves, lossCurve(r))
		j := Job{
			ID: fmt.Sprintf(
				"%s-%03d",
				s.name,
				i+1,
			),
			Tenant:      s.tenant,
			Submit:      s.submit,
			Podsets:     gang(s.nodes * gpusPerNode),
			EndState:    Completed,
			Sweep:       s.name,
			Parallelism: sweepParallelism,
		}
		epochs := sweepEpochs
		if stop := s.stops(curves); stop > 0 {
			epochs, j.EndState = stop, Canceled
			curves[i] = curves[i][:stop]
		}
		j.Duration = time.Duration(epochs) * epoch
		out = append(out, j)
	}
	return out
}

// lossCurve draws the loss of a trial after each epoch, in millionths: l + a·100/(100 + k·e) with noise, in whole
// numbers, so that it is the same on every machine.
func lossCurve(r *rand.Rand) []int64 {
	level, above, speed := 200_000+r.Int64N(800_000), 400_000+r.Int64N(1_200_000), 10+r.Int64N(90)
	out := make([]int64, sweepEpochs)
	for e := range out {
		out[e] = level + above*100/(100+speed*int64(e+1)) + r.Int64N(40_001) - 20_000
	}
	return out
}

// medianAfter is the first epoch after which trials are stopped by the median, medianOf the number of earlier trials
// that must have reached the epoch.
const medianAfter, medianOf = 5, 3

// stopsByMedian stops a trial whose best loss is worse than the median of the running averages of earlier trials that
// reached the same epoch.
func stopsByMedian(curves [][]int64) int {
	last := curves[len(curves)-1]
	best := last[0]
	for e := range last {
		best = min(best, last[e])
		var means []int64
		for _, curve := range curves[:len(curves)-1] {
			if len(curve) > e {
				means = append(means, mean(curve[:e+1]))
			}
		}
		slices.Sort(means)
		if e+1 >= medianAfter && len(means) >= medianOf && best > means[len(means)/2] && e+1 < len(last) {
			return e + 1
		}
	}
	return 0
}

func mean(curve []int64) int64 {
	var sum int64
	for _, loss := range curve {
		sum += loss
	}
	return sum / int64(len(curve))
}

// rungs are the epochs after which ASHA judges: one trial in rungFactor continues.
func rungs() []int { return []int{2, 6, 18} }

const rungFactor = 3

// stopsByRungs stops a trial at a rung unless it is among the best third of those that have reached it, itself
// included.
func stopsByRungs(curves [][]int64) int {
	last := curves[len(curves)-1]
	for _, rung := range rungs() {
		reached, better := 0, 0
		for _, curve := range curves {
			if len(curve) < rung {
				continue
			}
			reached++
			if cmp.Less(curve[rung-1], last[rung-1]) {
				better++
			}
		}
		if better >= max(1, reached/rungFactor) {
			return rung
		}
	}
	return 0
}
