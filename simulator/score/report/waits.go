package report

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// curve is a distribution: the share of jobs that waited at most X seconds is Y.
type curve struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
	// jobs is the number of its jobs, those that still wait included.
	jobs int
}

// points is the largest number of points of a curve.
const points = 200

// waits are the distributions of waits: that of all jobs, that of GPU-hours, and one of each size class. Jobs that
// still wait at the end count in the whole, but never as served: their curves end below 1.
func waits(in *Input) []curve {
	if len(in.Outcomes) == 0 {
		return nil
	}
	sorted := byWait(in.Outcomes)
	one := func(*measure.Outcome) float64 { return 1 }
	curves := []curve{
		distribution("all jobs", sorted, one),
		distribution("weighted by GPU-hours", sorted, work),
	}
	for _, class := range in.classes() {
		of := slices.DeleteFunc(slices.Clone(sorted), func(o measure.Outcome) bool { return o.Class != class })
		if len(of) > 0 {
			curves = append(curves, distribution(class, of, one))
		}
	}
	return slices.DeleteFunc(curves, func(c curve) bool { return len(c.X) == 0 })
}

func byWait(outcomes []measure.Outcome) []measure.Outcome {
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b measure.Outcome) int { return cmp.Compare(a.Wait, b.Wait) })
	return sorted
}

// work is the GPU-hours that a job asks for.
func work(o *measure.Outcome) float64 { return float64(o.Accelerators) * o.Duration.Hours() }

// distribution is the curve of outcomes that are sorted by their waits.
func distribution(name string, sorted []measure.Outcome, weight func(*measure.Outcome) float64) curve {
	c := curve{Name: name, jobs: len(sorted)}
	total := 0.0
	for i := range sorted {
		total += weight(&sorted[i])
	}
	if total <= 0 {
		return c
	}
	sum, next, last := 0.0, 0.0, measure.Never
	for i := range sorted {
		o := &sorted[i]
		if o.Waiting {
			continue
		}
		last = o.Wait
		sum += weight(o)
		if share := sum / total; share >= next {
			c.X, c.Y = append(c.X, round(o.Wait.Seconds(), 1)), append(c.Y, round(share, 4))
			next = share + 1.0/points
		}
	}
	// Wherever the grid was, the curve ends with the last one that was served.
	if last != measure.Never && c.X[len(c.X)-1] != round(last.Seconds(), 1) {
		c.X, c.Y = append(c.X, round(last.Seconds(), 1)), append(c.Y, round(sum/total, 4))
	} else if last != measure.Never {
		c.Y[len(c.Y)-1] = round(sum/total, 4)
	}
	return c
}

// reached returns the longest wait of the given share of the curve's jobs; false if fewer were served.
func (c *curve) reached(share float64) (float64, bool) {
	for i, y := range c.Y {
		if y >= share {
			return c.X[i], true
		}
	}
	return 0, false
}

// longest are the jobs that waited longest, at most n.
func longest(outcomes []measure.Outcome, n int) []measure.Outcome {
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b measure.Outcome) int {
		return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(a.Job, b.Job))
	})
	return slices.DeleteFunc(sorted[:min(n, len(sorted))], func(o measure.Outcome) bool { return o.Wait <= 0 })
}
