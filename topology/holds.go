package topology

import (
	"cmp"
	"slices"
)

// holder says how many of an ask's members a domain holds.
type holder struct {
	*ask
	lay *layout
	// Either a solver, whose fronts tell, or a packer for many kinds.
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

// holds returns how many members the vertex holds, running ones included, and which kind lacks places.
func (h *holder) holds(v int) (members, lacking int) {
	all := len(h.gang.Members)
	if h.packer != nil {
		p := h.packer.pack(v)
		return all - p.missing, p.lacking
	}
	s := h.solver
	runs := all - h.waiting()
	if m, _ := s.mixerOf(v); m.layers.count() == 1 && s.placed == nil {
		return s.members(v, min(int(s.units[v]), s.mostUnits(v)), 0), 0
	}
	best := -1
	for layer, points := range s.inside(v) {
		if n := points.most(); n >= 0 {
			if total := s.members(v, n, layer) - s.count(s.placed, v); total > best {
				best, lacking = total, h.lack(v, n, layer)
			}
		}
	}
	return min(max(best, 0)+runs, all), lacking
}

// mostUnits is how many units there are to place in the vertex.
func (s *solver) mostUnits(v int) int {
	units, _ := s.target(v)
	return units
}

// lack returns the first kind that is not complete.
func (h *holder) lack(v, units, layer int) int {
	if units < h.solver.mostUnits(v) {
		return 0
	}
	for i, n := range h.solver.few.digits(layer % h.solver.few.count()) {
		if n < len(h.kinds[i+1].ranks) {
			return i + 1
		}
	}
	return 0
}

// rank fills in the nearest domains and returns the vertex of the best one, -1 if there is none.
func (h *holder) rank(s *Shortfall) int {
	required := h.lay.position(h.rules.required)
	best := -1
	perLevel := make([]int, len(h.lay.ladder))
	outer := make([]Near, len(h.lay.ladder))
	for v, u := range h.lay.vertices {
		at := u.level
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

// detailed counts what only the domains that are listed are asked for.
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
	// Domains come in path order, so an equal one goes behind those already there.
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
