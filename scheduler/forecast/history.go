package forecast

import (
	"cmp"
	"maps"
	"slices"
)

// mostClasses bounds the memory of a history: a kilobyte each.
const mostClasses = 4096

// leastRuns is the number of runs that have to have ended before anything is predicted.
const leastRuns = 8

// priorRuns is the weight, in runs of a class, of all broader classes together, and the largest weight of one namespace
// in predictions about all namespaces: a tenant that floods the history with runs moves predictions about others no
// more than any other tenant does.
const priorRuns = 8 * one

// History holds the durations of past runs. It is not safe for concurrent use.
type History struct {
	classes map[string]*class
	// shared are the classes of whole namespaces, by size, those of all sizes under allSizes.
	shared map[int64][]*class
	// ended counts the runs.
	ended int64
}

// class counts the runs of one class; last is the number of the latest.
type class struct {
	runs Distribution
	last int64
}

// New returns a history of nothing.
func New() *History {
	return &History{classes: make(map[string]*class), shared: make(map[int64][]*class)}
}

// Ended notes that a run has completed after so many seconds. Runs that were evicted, or failed for their nodes, are
// not to be noted.
func (h *History) Ended(k Key, seconds int64) {
	h.ended++
	for _, name := range k.classes() {
		c := h.classes[name]
		if c == nil {
			c = &class{}
			h.put(name, c)
		}
		c.last = h.ended
		c.runs.add(seconds)
	}
	if len(h.classes) > mostClasses {
		h.forget(mostClasses - mostClasses/8)
	}
}

// put puts a class in.
func (h *History) put(name string, c *class) {
	h.classes[name] = c
	if size, ok := sizeOf(name); ok {
		h.shared[size] = append(h.shared[size], c)
	}
}

// forget forgets all but so many classes.
func (h *History) forget(keep int) {
	kept := h.latest(keep)
	old := h.classes
	h.classes, h.shared = make(map[string]*class, len(kept)), make(map[int64][]*class)
	for _, name := range kept {
		h.put(name, old[name])
	}
}

// latest returns the names of so many classes: the latest of each namespace, then the second of each, and so on. A
// tenant that gives each run another name fills the space that others leave, and drives out none of their classes.
func (h *History) latest(most int) []string {
	names := slices.SortedFunc(maps.Keys(h.classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(h.classes[b].last, h.classes[a].last), cmp.Compare(a, b))
	})
	counts, turns := make(map[string]int), make(map[string]int, len(names))
	for _, name := range names {
		namespace := namespaceOf(name)
		turns[name] = counts[namespace]
		counts[namespace]++
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(turns[a], turns[b]) })
	return names[:min(most, len(names))]
}

// Of returns the distribution of the run times of a key, as far as earlier runs determine it. It is empty before a few
// runs have ended.
func (h *History) Of(k Key) *Distribution {
	if h.ended < leastRuns {
		return &Distribution{}
	}
	out := together(h.shared[allSizes])
	size := together(h.shared[k.Size])
	out = size.over(&out)
	for _, name := range k.classes()[1:] {
		if c := h.classes[name]; c != nil {
			out = c.runs.over(&out)
		}
	}
	return &out
}

// together sums the distributions of classes; each weighs priorRuns at most. The order of the classes does not matter.
func together(classes []*class) Distribution {
	var out Distribution
	for _, c := range classes {
		all := c.runs.sum()
		if all == 0 {
			continue
		}
		weight := min(all, priorRuns)
		for i, n := range c.runs {
			if n > 0 {
				out[i] += n * weight / all
			}
		}
	}
	return out
}

// EndQuantile is the quantile of run times, in thousandths, that counts as the run time of a workload that declares
// none: nine in ten end by then. An end in the middle would be outlasted by every second unit, and a lease that rests
// on it would be late as often.
const EndQuantile = 900

// The quantiles, in thousandths, between which eight in ten lie.
const (
	LowQuantile  = 100
	HighQuantile = 900
)

// RunTime returns the longest run time in seconds, by EndQuantile and from its start on, of a run of a key that has run
// for so many already; 0 if the history has no answer.
func (h *History) RunTime(k Key, ran int64) int64 {
	seconds, _ := h.Of(k).Quantile(EndQuantile, ran)
	return seconds
}
