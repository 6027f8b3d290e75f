package topology

import (
	"cmp"
	"slices"
)

// holder counts the members of an ask that a domain holds.
type holder struct {
	*ask
	lay *layout
	// Either a solver or, for many kinds, a packer.
	solver *solver
	packer *packer
}

func newHolder(a *ask) *holder {
	h := &holder{ask: a, lay: a.ledger.Tree.layout().holding(a.rules.required)}
	if a.exact() {
		h.solver = newSolver(a, h.lay, a.weights(), a.rules)
	} else {
		h.packer = newPacker(a)
	}
	return h
}

// missing is the first of a kind's members without a place, by its place among the kind's ranks.
type missing struct{ kind, from int }

// holds returns the number of members that the vertex holds, running ones included, and the first one without a place.
func (h *holder) holds(v int) (int, missing) {
	all := len(h.gang.Members)
	if h.packer != nil {
		p := h.packer.pack(v)
		placed := 0
		for _, s := range p.spots[p.lacking] {
			placed += s.count
		}
		return all - p.missing, missing{p.lacking, placed}
	}
	s := h.solver
	if m, _ := s.mixerOf(v); m.Layers().Count() == 1 && s.placed == nil {
		n := s.members(v, s.bounded(v, min(int(s.units[v]), s.mostUnits(v)), 0), 0)
		return n, missing{from: n}
	}
	best, lacking := -1, missing{}
	for layer := range s.many.Count() {
		if n := s.bounded(v, min(s.holds(v, layer), s.mostUnits(v)), layer); n >= 0 {
			if total := s.members(v, n, layer) - s.count(s.placed, v); total > best {
				best, lacking = total, h.lack(v, n, layer)
			}
		}
	}
	return min(max(best, 0)+all-h.waiting(), all), lacking
}

// bounded bounds the units in a vertex by the rules of the domains around it, which then hold the whole gang.
func (s *solver) bounded(v, units, layer int) int {
	for w := s.lay.vertices[v].parent; w >= 0; w = s.lay.vertices[w].parent {
		if s.inSegments(w) == s.inSegments(v) {
			units = min(units, max(s.limit(w, layer), 0))
		}
	}
	return units
}

// mostUnits returns the number of units to place in the vertex.
func (s *solver) mostUnits(v int) int {
	units, _ := s.target(v)
	return units
}

// lack returns the first member without a place if these units and the layer's small members have one.
func (h *holder) lack(v, units, layer int) missing {
	s := h.solver
	if small := s.few.Sum(layer % s.few.Count()); units < s.mostUnits(v) || small == s.few.Sum(s.few.Full()) {
		return missing{from: s.members(v, units, layer) - s.count(s.placed, v) - small}
	}
	for i, n := range s.few.Digits(layer % s.few.Count()) {
		if n < len(h.kinds[i+1].ranks) {
			return missing{i + 1, n}
		}
	}
	return missing{}
}

// rank fills in the nearest domains and returns the vertex of the best one, -1 if there is none.
func (h *holder) rank(s *Shortfall) int {
	required := h.lay.position(h.rules.required)
	best := -1
	perLevel := make([]int, len(h.lay.ladder))
	outer := make([]Near, len(h.lay.ladder))
	for v, u := range h.lay.vertices {
		at := u.level
		if h.solver != nil && h.solver.count(h.solver.placed, v) != h.solver.count(h.solver.placed, 0) {
			continue // the others could not join those that run
		}
		if at != required && (at < 0 || at >= len(h.lay.ladder) || h.packer != nil) {
			continue
		}
		near := h.near(v)
		if at >= 0 && at < len(h.lay.ladder) && (perLevel[at] == 0 || near.Holds > outer[at].Holds) {
			perLevel[at], outer[at] = v, near
		}
		if at == required && h.insert(s, v, near) {
			best = v
		}
	}
	for at, v := range perLevel {
		if v > 0 {
			outer[at].Domain = h.lay.domain(v)
			s.Levels = append(s.Levels, h.detailed(v, outer[at]))
		}
	}
	return best
}

func (h *holder) near(v int) Near {
	holds, _ := h.holds(v)
	return Near{Holds: holds, Lacks: max(len(h.gang.Members)-holds, 0)}
}

// detailed adds the counts that only the listed domains need.
func (h *holder) detailed(v int, near Near) Near {
	u := h.lay.vertices[v]
	for _, node := range h.lay.nodes[u.first:u.last] {
		k := h.kinds[0]
		if !h.unlabelled(node) && !k.barred(node) && k.room(h.ledger.Free[node]) == 0 {
			near.Full++
		}
	}
	return near
}

// insert puts a domain into its place among the nearest, and reports whether it is the first.
func (h *holder) insert(s *Shortfall, v int, near Near) bool {
	// Domains arrive in path order, so an equal one is inserted behind those already there.
	at, _ := slices.BinarySearchFunc(s.Nearest, near, func(x, y Near) int {
		return cmp.Or(cmp.Compare(y.Holds, x.Holds), -1)
	})
	if at == nearest {
		return false
	}
	near.Domain = h.lay.domain(v)
	s.Nearest = slices.Insert(s.Nearest, at, h.detailed(v, near))
	s.Nearest = s.Nearest[:min(len(s.Nearest), nearest)]
	return at == 0
}
