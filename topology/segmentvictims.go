package topology

import "slices"

// segmentDomain is a domain of the segments' level, the gangs that hold something there, and the gangs whose departure
// makes room for one more segment, with their price.
type segmentDomain struct {
	x     int
	there []int
	// leaves are the vertices of the nodes on which each of them holds something.
	leaves map[int][]int
	known  bool
	picks  []int
	price  int64
}

// takeBySegment takes victims so that each further segment is placed where it costs least. Segments of 4 in racks of 6:
// r1 has 3 nodes free and needs one more, which costs 20; r2 has 1 free and needs three, at 5 each. r2 is first with
// 15. This is a first set only: search betters it.
func (g *candidateDomain) takeBySegment() {
	domains, of := g.segmentDomains()
	for g.low.counts[0].lacking() > 0 {
		best := -1
		for i := range domains {
			if !domains[i].known {
				g.priceSegment(&domains[i])
			}
			if len(domains[i].picks) > 0 && (best < 0 || domains[i].price < domains[best].price) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		for _, i := range domains[best].picks {
			g.take(i)
			for _, j := range of[i] {
				domains[j].known = false
			}
		}
	}
}

// segmentDomains returns the domains and in which of them each victim is.
func (g *candidateDomain) segmentDomains() ([]segmentDomain, [][]int) {
	var domains []segmentDomain
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
				j = len(domains)
				at[x] = j
				domains = append(domains, segmentDomain{x: x, leaves: make(map[int][]int)})
			}
			if len(domains[j].leaves[i]) == 0 {
				domains[j].there = append(domains[j].there, i)
				of[i] = append(of[i], j)
			}
			domains[j].leaves[i] = append(domains[j].leaves[i], leaf)
		}
	}
	return domains, of
}

// priceSegment finds the gangs that would have to leave the domain for one more segment, in the order of cost per room.
func (g *candidateDomain) priceSegment(h *segmentDomain) {
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
