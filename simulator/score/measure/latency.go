package measure

import (
	"math"
	"time"
)

// latencies are counted in classes a hundredth wide, so that a run with any number of decisions needs as little memory.
type latencies struct {
	counts []int
	count  int
	sum    time.Duration
	most   time.Duration
}

// width is the ratio of the bounds of a class.
const width = 1.01

func (l *latencies) add(took time.Duration) {
	class := 0
	if took > 1 {
		class = int(math.Log(float64(took)) / math.Log(width))
	}
	for len(l.counts) <= class {
		l.counts = append(l.counts, 0)
	}
	l.counts[class]++
	l.count++
	l.sum += max(took, 0)
	l.most = max(l.most, took)
}

// latency is in milliseconds. The percentile of a class is its upper bound, or the most of all if that is less.
func (l *latencies) latency() Latency {
	return Latency{Count: l.count, P50: l.percentile(50), P99: l.percentile(99), Max: Tidy(milliseconds(l.most))}
}

func (l *latencies) percentile(percent int) float64 {
	rank, seen := (l.count*percent+99)/100, 0
	for class, count := range l.counts {
		if seen += count; seen >= rank && seen > 0 {
			bound := math.Pow(width, float64(class+1)) / float64(time.Millisecond)
			return Tidy(min(bound, milliseconds(l.most)))
		}
	}
	return 0
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
