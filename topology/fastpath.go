package topology

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// bestByTable is the fast path of best: costs that the subtree table knows are not computed again, and domains that are too small
// are skipped. No node holds the whole gang (see onOneNode).
func (s *solver) bestByTable() (candidate, bool) {
	c := s.table
	best, found := candidate{}, false
	for level := len(c.lay.ladder) - 1; level >= max(s.required, -1); level-- {
		for _, at := range c.holding(level) {
			v := int(at)
			if int(c.units[v]) < c.target {
				continue
			}
			if found && s.atLeast(v) > best.cost {
				break // so it is for all of the level
			}
			if c.cost[v] == unknownCost {
				c.cost[v] = s.cost(v)
			}
			other := candidate{v, c.cost[v]}
			if other.cost != knapsack.Never && (!found || s.compare(other, best) < 0) {
				best, found = other, true
			}
		}
	}
	return best, found
}

// holding returns the domains of a level that may hold the gang: all, or of a gang that few can hold those inside the domains around them
// that hold it.
func (c *subtreeTable) holding(level int) []int32 {
	const few = 8
	if few*c.target < int(c.units[0]) {
		return c.domains[level+1]
	}
	around := []int32{0}
	for at := range level + 1 {
		var inside []int32
		for _, v := range around {
			if c.lay.vertices[v].level >= at {
				inside = append(inside, v) // no label at this level
				continue
			}
			for kid := int(v) + 1; kid < c.lay.vertices[v].end; kid = c.lay.vertices[kid].end {
				if int(c.units[kid]) >= c.target && c.lay.vertices[kid].level < len(c.lay.ladder) {
					inside = append(inside, int32(kid))
				}
			}
		}
		around = inside
	}
	return slices.DeleteFunc(around, func(v int32) bool { return c.lay.vertices[v].level != level })
}

// onOneNode picks the tightest node that fits the whole gang, which costs nothing. Ties: fuller parent domain, then tree order. It
// reports whether there is one.
func (c *subtreeTable) onOneNode(a *ask) (plan, bool) {
	if c.low[0] == 0 {
		return plan{}, false
	}
	best := -1
	c.smallest(0, &best)
	node := c.lay.nodes[c.lay.vertices[best].first]
	p := plan{nodes: make([]int, c.target), least: make([]int, len(c.lay.ladder)+1)}
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
func (c *subtreeTable) smallest(v int, best *int) {
	for kid := v + 1; kid < c.lay.vertices[v].end; kid = c.lay.vertices[kid].end {
		if c.low[kid] != c.low[0] {
			continue
		}
		if c.lay.vertices[kid].level < len(c.lay.ladder) {
			c.smallest(kid, best)
			continue
		}
		if *best < 0 || c.fuller(kid, *best) {
			*best = kid
		}
		return // its siblings have the same surroundings and follow later, as do nodes after domains
	}
}

// fuller reports whether the domains around a leaf have less room than those around another leaf that precedes it.
func (c *subtreeTable) fuller(leaf, other int) bool {
	for x, y := leaf, other; x >= 0 && y >= 0; x, y = c.lay.vertices[x].parent, c.lay.vertices[y].parent {
		if c.units[x] != c.units[y] {
			return c.units[x] < c.units[y]
		}
	}
	return false
}

// fewestDomains returns the fewest domains of a level that hold the gang.
func (c *subtreeTable) fewestDomains(level int) int {
	var rooms roomCounts
	switch {
	case level < len(c.lay.ladder):
		for _, v := range c.spans[level] {
			if int(c.units[v]) >= c.target {
				return 1
			}
			rooms.add(c.units[v])
		}
	case c.large == 0:
		rooms.with = c.with
	default:
		for _, n := range c.room {
			rooms.add(n)
		}
	}
	return rooms.fewest(c.target)
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
