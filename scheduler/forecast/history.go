package forecast

import (
	"cmp"
	"maps"
	"slices"
)

// mostClasses bounds the memory of a history: a kilobyte each.
const mostClasses = 4096

// leastRuns is how many runs have to have ended before anything is predicted.
const leastRuns = 8

// priorRuns is as how many runs of a class all broader ones weigh.
const priorRuns = 8 * one

// History is how long runs took. It is not safe for concurrent use.
type History struct {
	classes map[string]*class
	// ended counts the runs.
	ended int64
}

// class counts the runs of one class; last is the number of the latest.
type class struct {
	runs Distribution
	last int64
}

// New returns a history of nothing.
func New() *History { return &History{classes: make(map[string]*class)} }

// Ended notes that a run has completed after so many seconds. Runs that were evicted, or failed for their nodes, are not to be noted.
func (h *History) Ended(k Key, seconds int64) {
	h.ended++
	for _, name := range k.classes() {
		c := h.classes[name]
		if c == nil {
			c = &class{}
			h.classes[name] = c
		}
		c.last = h.ended
		c.runs.add(seconds)
	}
	if len(h.classes) > mostClasses {
		h.forget(mostClasses - mostClasses/8)
	}
}

// forget forgets the classes whose last run is longest ago, but for so many.
func (h *History) forget(keep int) {
	names := slices.SortedFunc(maps.Keys(h.classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(h.classes[b].last, h.classes[a].last), cmp.Compare(a, b))
	})
	for _, name := range names[min(keep, len(names)):] {
		delete(h.classes, name)
	}
}

// Of returns how long runs of a key take, as far as earlier ones tell. It is empty before a few runs have ended.
func (h *History) Of(k Key) *Distribution {
	out := Distribution{}
	if h.ended < leastRuns {
		return &out
	}
	for _, name := range k.classes() {
		if c := h.classes[name]; c != nil {
			out = c.runs.over(&out, priorRuns)
		}
	}
	return &out
}
