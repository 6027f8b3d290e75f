package forecast

import (
	"cmp"
	"slices"
)

// MostKept bounds the classes of a State: about 150 bytes of JSON each.
const MostKept = 2048

// State has to survive a restart. It can be written as JSON.
type State struct {
	// Ended counts the runs.
	Ended int64 `json:"ended"`
	// Classes are those with the latest runs, by name.
	Classes []Class `json:"classes,omitempty"`
}

// Class is a class with its buckets that are not empty.
type Class struct {
	Name string `json:"name"`
	Last int64  `json:"last"`
	// Buckets are pairs of a bucket and its weight.
	Buckets [][2]int64 `json:"buckets"`
}

// State returns the current state with at most so many classes: those that forget would retain.
func (h *History) State(most int) State {
	out := State{Ended: h.ended}
	for _, name := range h.latest(most) {
		c := h.classes[name]
		of := Class{Name: name, Last: c.last}
		of.Buckets = c.runs.sparse()
		out.Classes = append(out.Classes, of)
	}
	slices.SortFunc(out.Classes, func(a, b Class) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Restore returns the history of a state. It leaves out buckets that do not exist, weights that are not positive, and
// entries beyond the size of a history.
func Restore(s State) *History {
	h := New()
	h.ended = max(s.Ended, 0)
	for _, of := range s.Classes[:min(len(s.Classes), mostClasses)] {
		if h.classes[of.Name] != nil {
			continue
		}
		c := &class{last: of.Last}
		c.runs.fill(of.Buckets)
		h.put(of.Name, c)
	}
	return h
}

// sparse returns the buckets that are not empty, each with its weight.
func (d *Distribution) sparse() (out [][2]int64) {
	for i, n := range d {
		if n > 0 {
			out = append(out, [2]int64{int64(i), n})
		}
	}
	return out
}

// fill sets buckets, but for those that there are not, and weights that are not positive.
func (d *Distribution) fill(pairs [][2]int64) {
	for _, b := range pairs {
		if b[0] >= 0 && b[0] < buckets && b[1] > 0 {
			d[b[0]] = min(b[1], halving*one)
		}
	}
}
