package measure

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Series holds the state of the fleet over time: columns of equal length, at most MostPoints long. Points are at equal
// distances and hold the state from that instant on, except the last, which is the end of the run.
type Series struct {
	// Seconds are since the beginning.
	Seconds []float64 `json:"seconds"`
	// Used accelerators, those that waiting gangs ask for, and those on nodes that are open and there.
	Used     []int64 `json:"used"`
	Demanded []int64 `json:"demanded"`
	Capacity []int64 `json:"capacity"`
	// Fragmentation and Largest are those of the scorecard.
	Fragmentation []float64 `json:"fragmentation"`
	Largest       []int64   `json:"largest_placeable"`
	// Waiting is the number of gangs that wait, OldestSeconds the wait of the oldest of them; 0 if none waits.
	Waiting       []int     `json:"waiting"`
	OldestSeconds []float64 `json:"oldest_waiting_seconds"`
}

// MostPoints is the largest number of points of a series.
const MostPoints = 2000

// sample is a point of a series.
type sample struct {
	used, demanded, capacity, largest int64
	fragmentation                     float64
	waiting                           int
	oldest                            time.Duration
}

// sampler samples at equal distances. How long a run will be is not known, so it drops every second sample and doubles
// the distance when there are too many: which samples are left depends on the events alone.
type sampler struct {
	distance time.Duration
	samples  []sample
}

// newSampler begins with a distance that a run of the length to be expected has room for: as long as submissions take,
// or as the work does when nothing is ever idle.
func newSampler(s *scenario.Scenario) *sampler {
	expected, total := 0.0, weighted{}
	for i := range s.Jobs {
		expected = max(expected, s.Jobs[i].Submit.Seconds())
		if runs := s.Jobs[i].Duration; runs != scenario.Forever {
			expected = max(expected, (s.Jobs[i].Submit + runs).Seconds())
			total.add(runs.Seconds(), float64(s.Jobs[i].Accelerators))
		}
	}
	expected = max(expected, ratio(total.sum, float64(s.GPUs())))
	distance := time.Duration(min(expected, trace.MostTime.Seconds())/(MostPoints-1)) * time.Second
	return &sampler{distance: max(distance, time.Second)}
}

// next is the instant of the next sample.
func (s *sampler) next() time.Duration { return s.distance * time.Duration(len(s.samples)) }

// pass samples a time in which nothing changes, without its end. The age of the oldest that waits grows by itself.
func (s *sampler) pass(from, to time.Duration, state func() sample) {
	if s.next() >= to {
		return
	}
	now := state()
	for at := s.next(); at < to; at = s.next() {
		point := now
		if now.waiting > 0 {
			point.oldest += at - from
		}
		s.samples = append(s.samples, point)
		if len(s.samples) >= MostPoints {
			s.thin()
		}
	}
}

// thin drops every second sample.
func (s *sampler) thin() {
	kept := s.samples[:0]
	for i := 0; i < len(s.samples); i += 2 {
		kept = append(kept, s.samples[i])
	}
	s.samples, s.distance = kept, 2*s.distance
}

// state is a sample of now.
func (t *Tally) state() sample {
	t.space.refresh()
	s := sample{
		used: t.holdings.inUse, demanded: t.queue.demand, capacity: t.holdings.capacity,
		largest: t.space.largest(), fragmentation: t.space.fragmentation(), waiting: t.queue.waiting,
	}
	if t.queue.waiting > 0 {
		s.oldest = t.now - t.jobs[t.queue.oldest(t.jobs)].submit
	}
	return s
}

// Series returns the state of the fleet until now.
func (t *Tally) Series() Series {
	var s Series
	for i, point := range t.series.samples {
		s.add(t.series.distance*time.Duration(i), point)
	}
	s.add(t.now, t.state())
	return s
}

func (s *Series) add(at time.Duration, p sample) {
	s.Seconds = append(s.Seconds, at.Seconds())
	s.Used, s.Demanded = append(s.Used, p.used), append(s.Demanded, p.demanded)
	s.Capacity = append(s.Capacity, p.capacity)
	s.Fragmentation, s.Largest = append(s.Fragmentation, Tidy(p.fragmentation)), append(s.Largest, p.largest)
	s.Waiting, s.OldestSeconds = append(s.Waiting, p.waiting), append(s.OldestSeconds, p.oldest.Seconds())
}

// spaces sums up the free accelerators of the samples in the window; of a run in which no time passes, the state at its
// end. That is also the state with which a window ends that ends with the run.
func (t *Tally) spaces() (Fragmentation, LargestPlaceable) {
	var points []sample
	for i, point := range t.series.samples {
		if t.window.holds(t.series.distance * time.Duration(i)) {
			points = append(points, point)
		}
	}
	end := t.state()
	if len(points) == 0 {
		points = append(points, end)
	}
	if t.window.to < t.now {
		end = points[len(points)-1]
	}
	fragments, largest, least := make([]float64, 0, len(points)), make([]float64, 0, len(points)), points[0].largest
	for _, p := range points {
		fragments, largest = append(fragments, p.fragmentation), append(largest, float64(p.largest))
		least = min(least, p.largest)
	}
	return Fragmentation{Mean: mean(fragments), End: Tidy(end.fragmentation)},
		LargestPlaceable{Mean: mean(largest), Min: float64(least)}
}
