package report

import (
	"math/bits"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
)

// latency counts decisions by their cost, in classes each twice as wide as the one before: class i holds those below
// 2^i microseconds that are in none before it.
type latency struct{ placed, refused [buckets]int }

// buckets is the number of classes: the last holds all from about half a minute on.
const buckets = 26

func (l *latency) add(d engine.Decision) {
	class := min(bits.Len64(uint64(max(0, d.Took/time.Microsecond))), buckets-1)
	if d.Placed {
		l.placed[class]++
	} else {
		l.refused[class]++
	}
}

// latencyData are the classes from the first to the last that have decisions.
type latencyData struct {
	// Below are the upper bounds in microseconds.
	Below   []int64 `json:"below"`
	Placed  []int   `json:"placed"`
	Refused []int   `json:"refused"`
}

func (l *latency) data() latencyData {
	var d latencyData
	first, last := buckets, -1
	for i := range buckets {
		if l.placed[i]+l.refused[i] > 0 {
			first, last = min(first, i), i
		}
	}
	for i := first; i <= last; i++ {
		d.Below = append(d.Below, 1<<i)
		d.Placed, d.Refused = append(d.Placed, l.placed[i]), append(d.Refused, l.refused[i])
	}
	return d
}
