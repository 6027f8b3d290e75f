package topology

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// bestByTable is the fast path of best: costs that the subtree table knows are not computed again, and domains that are
// too small are skipped. No node holds the whole gang (see onOneNode).
func (s *solver) bestByTable() (candidate, bool) {
	t := s.table
	best, found := candidate{}, false
	for level := len(t.lay.ladder) - 1; level >= max(s.required, -1); level-- {
		for _, at := range t.holding(level) {
			v := int(at)
			if int(t.units[v]) < t.target {
				continue
			}
			if found && s.atLeast(v) > best.cost {
				break // so it is for all of the level
			}
			if t.cost[v] == unknownCost {
				t.cost[v] = s.cost(v)
			}
			other := candidate{v, t.cost[v]}
			if other.cost != knapsack.Never && (!found || s.compare(other, best) < 0) {
				best, found = other, true
			}
		}
	}
	return best, found
}

// holding returns the domains of a level that may hold the gang: all, or of a gang that few can hold those inside the
// domains around them that hold it.
func (t *subtreeTable) holding(level int) []int32 {
	const few = 8
	if few*t.target < int(t.units[0]) {
		return t.domains[level+1]
	}
	around := []int32{0}
	for at := range level + 1 {
		var inside []int32
		for _, v := range around {
			if t.lay.vertices[v].level >= at {
				inside = append(inside, v) // no label at this level
				continue
			}
			for kid := int(v) + 1; kid < t.lay.vertices[v].end; kid = t.lay.vertices[kid].end {
				if int(t.units[kid]) >= t.target && t.lay.vertices[kid].level < len(t.lay.ladder) {
					inside = append(inside, int32(kid))
				}
			}
		}
		around = inside
	}
	return slices.DeleteFunc(around, func(v int32) bool { return t.lay.vertices[v].level != level })
}

// onOneNode picks the tightest node that fits the whole gang, which costs nothing. Ties: fuller parent domain, then
// tree order. It reports whether there is one.
func (t *subtreeTable) onOneNode(a *ask) (plan, bool) {
	if t.low[0] == 0 {
		return plan{}, false
	}
	best := -1
	t.smallest(0, &best)
	node := t.lay.nodes[t.lay.vertices[best].first]
	p := plan{nodes: make([]int, t.target), least: make([]int, len(t.lay.ladder)+1)}
	for i := range p.nodes {
		p.nodes[i] = node
	}
	for level := range p.least {
		p.least[level] = 1
	}
	p.ask = a
	return p, true
}

// smallest betters the best leaf so far (-1 for none) by those below a vertex.
func (t *subtreeTable) smallest(v int, best *int) {
	for kid := v + 1; kid < t.lay.vertices[v].end; kid = t.lay.vertices[kid].end {
		if t.low[kid] != t.low[0] {
			continue
		}
		if t.lay.vertices[kid].level < len(t.lay.ladder) {
			t.smallest(kid, best)
			continue
		}
		if *best < 0 || t.fuller(kid, *best) {
			*best = kid
		}
		return // its siblings have the same surroundings and follow later, as do nodes after domains
	}
}

// fuller reports whether the domains around a leaf have less room than those around another leaf that precedes it.
func (t *subtreeTable) fuller(leaf, other int) bool {
	for x, y := leaf, other; x >= 0 && y >= 0; x, y = t.lay.vertices[x].parent, t.lay.vertices[y].parent {
		if t.units[x] != t.units[y] {
			return t.units[x] < t.units[y]
		}
	}
	return false
}

// fewestDomains returns the fewest domains of a level that hold the gang.
func (t *subtreeTable) fewestDomains(level int) int {
	var rooms roomCounts
	switch {
	case level < len(t.lay.ladder):
		for _, v := range t.spans[level] {
			if int(t.units[v]) >= t.target {
				return 1
			}
			rooms.add(t.units[v])
		}
	case t.large == 0:
		rooms.with = t.with
	default:
		for _, n := range t.room {
			rooms.add(n)
		}
	}
	return rooms.fewest(t.target)
}

// roomCounts is the rooms of domains or nodes: small ones are counted, as there may be 100,000 of them.
type roomCounts struct {
	with  [little]int32
	large []int32
}

func (c *roomCounts) add(room int32) {
	if room < little {
		c.with[max(room, 0)]++
	} else {
		c.large = append(c.large, room)
	}
}

// fewest returns how many of them hold the members, the roomiest first.
func (c *roomCounts) fewest(needed int) int {
	slices.Sort(c.large)
	fewest := 0
	for _, n := range slices.Backward(c.large) {
		if needed <= 0 {
			break
		}
		needed, fewest = needed-int(n), fewest+1
	}
	for n := little - 1; n > 0 && needed > 0; n-- {
		take := min(int(c.with[n]), (needed+n-1)/n)
		needed, fewest = needed-take*n, fewest+take
	}
	return max(fewest, 1)
}
