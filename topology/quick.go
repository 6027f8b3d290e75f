package topology

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// quickest is best by a census: what it knows is not worked out again, and domains that are too small are not looked at. No node
// holds the whole gang (see onOneNode).
func (s *solver) quickest() (candidate, bool) {
	c := s.census
	best, found := candidate{}, false
	for level := len(c.lay.ladder) - 1; level >= max(s.required, -1); level-- {
		for _, at := range c.domains[level+1] {
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

// onOneNode plans the gang on the node with the least room that holds all of it, of equal ones that in the fullest surroundings,
// then the first. It reports whether there is one: no domain costs less, and of those that cost as much a node is the best.
func (c *census) onOneNode(a *ask) (plan, bool) {
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
func (c *census) smallest(v int, best *int) {
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
		return // the others beside it have the same around them, and come later, as do nodes after domains
	}
}

// fuller reports whether what is around a leaf has less room than what is around another one that comes before it.
func (c *census) fuller(leaf, other int) bool {
	for x, y := leaf, other; x >= 0 && y >= 0; x, y = c.lay.vertices[x].parent, c.lay.vertices[y].parent {
		if c.units[x] != c.units[y] {
			return c.units[x] < c.units[y]
		}
	}
	return false
}

// least is the fewest domains of a level that hold the gang.
func (c *census) least(level int) int {
	switch {
	case level < len(c.lay.ladder):
	case c.large == 0:
		return c.fewest(nil, c.with)
	default:
		return c.sorted(slices.Clone(c.room))
	}
	var units []int32
	for _, v := range c.spans[level] {
		if int(c.units[v]) >= c.target {
			return 1
		}
		if c.units[v] > 0 {
			units = append(units, c.units[v])
		}
	}
	return c.sorted(units)
}

// sorted is how many of the domains it takes, by their room.
func (c *census) sorted(units []int32) int {
	var with [little]int32
	large := units[:0]
	for _, n := range units {
		if n < little {
			with[n]++
		} else {
			large = append(large, n)
		}
	}
	slices.Sort(large)
	return c.fewest(large, with)
}

// fewest is how many it takes, the roomiest first: of those that are sorted, and of those that are counted by their room.
func (c *census) fewest(large []int32, with [little]int32) int {
	needed, fewest := c.target, 0
	for _, n := range slices.Backward(large) {
		if needed <= 0 {
			break
		}
		needed, fewest = needed-int(n), fewest+1
	}
	for n := little - 1; n > 0 && needed > 0; n-- {
		take := min(int(with[n]), (needed+n-1)/n)
		needed, fewest = needed-take*n, fewest+take
	}
	return max(fewest, 1)
}
