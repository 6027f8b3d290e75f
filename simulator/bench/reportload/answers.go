package reportload

import (
	"slices"
	"sync"
	"time"
)

// Answers counts the responses to reports by status code. It is safe for concurrent use.
type Answers struct {
	mu    sync.Mutex
	codes map[int]int
	took  []time.Duration
}

func (a *Answers) add(code int, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.codes == nil {
		a.codes = map[int]int{}
	}
	a.codes[code]++
	a.took = append(a.took, took)
}

// Reset clears the counts, and returns them.
func (a *Answers) Reset() (codes map[int]int, took []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	codes, took = a.codes, a.took
	a.codes, a.took = nil, nil
	return codes, took
}

// Quantile is the smallest of some durations that the share of them does not exceed; 0 of none.
func Quantile(durations []time.Duration, share float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
