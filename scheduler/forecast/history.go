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

// EndQuantile is the quantile of run times, in thousandths, that counts as the run time of what declares none: nine in ten end by then. An end in the middle
// would be outlasted by every second unit, and a lease that rests on it would be late as often.
const EndQuantile = 900

// RunTime returns how many seconds a run of a key takes at most that has run for so many already, by EndQuantile, from its start on; 0 if the history does
// not tell.
func (h *History) RunTime(k Key, ran int64) int64 {
	seconds, _ := h.Of(k).Quantile(EndQuantile, ran)
	return seconds
}
