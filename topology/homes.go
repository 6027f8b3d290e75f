package topology

import "slices"

// home is a domain of the segments' level, who holds something there, and whose departure makes room for one more
// segment at what price.
type home struct {
	x     int
	there []int
	// leaves are the vertices of the nodes that each of them holds something on.
	leaves map[int][]int
	known  bool
	picks  []int
	price  int64
}

// gather takes victims so that the next segment always comes where it costs least.
func (g *ground) gather() {
	homes, of := g.homes()
	for g.low.counts[0].lacking() > 0 {
		best := -1
		for i := range homes {
			if !homes[i].known {
				g.price(&homes[i])
			}
			if len(homes[i].picks) > 0 && (best < 0 || homes[i].price < homes[best].price) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		for _, i := range homes[best].picks {
			g.take(i)
			for _, j := range of[i] {
				homes[j].known = false
			}
		}
	}
}

// homes returns the domains and in which of them each victim is.
func (g *ground) homes() ([]home, [][]int) {
	var homes []home
	at := make(map[int]int)
	of := make([][]int, len(g.victims))
	c := &g.low.counts[0]
	for i, w := range g.victims {
		for _, grant := range w.grants {
			leaf := g.lay.leaves[g.nodes[grant.node]] - g.v
			x := leaf
			for x > 0 && c.vertices[x].level != c.segment {
				x = c.vertices[x].parent - c.base
			}
			j, ok := at[x]
			if !ok {
				j = len(homes)
				at[x] = j
				homes = append(homes, home{x: x, leaves: make(map[int][]int)})
			}
			if len(homes[j].leaves[i]) == 0 {
				homes[j].there = append(homes[j].there, i)
				of[i] = append(of[i], j)
			}
			homes[j].leaves[i] = append(homes[j].leaves[i], leaf)
		}
	}
	return homes, of
}

// price finds who would have to leave the home for one more segment, by what they cost for the room that they take.
func (g *ground) price(h *home) {
	low, high := &g.low.counts[0], &g.high.counts[0]
	h.known, h.picks, h.price = true, nil, 0
	if high.units(h.x) <= low.units(h.x) {
		return
	}
	var offers []victim
	for _, i := range h.there {
		room := int64(0)
		for _, leaf := range h.leaves[i] {
			room += high.raw[leaf] - low.raw[leaf]
		}
		if room > 0 && !slices.Contains(g.path, i) {
			offers = append(offers, victim{gang: i, cost: g.victims[i].cost, worth: []int64{room}})
		}
	}
	slices.SortStableFunc(offers, func(a, b victim) int { return comparePrices(a, b, 0) })
	missing := low.size - low.raw[h.x]%low.size
	for _, o := range offers {
		if missing <= 0 {
			break
		}
		missing -= o.worth[0]
		h.picks = append(h.picks, o.gang)
		h.price = addCosts(h.price, o.cost)
	}
}
