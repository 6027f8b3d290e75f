package topology

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology/grid"
)

// searchBoxes finds the cheapest gangs whose departure frees a box: of every box in every torus, all gangs on its nodes
// that have no room, those boxes first that have fewest such nodes. Gangs leave a node although some of them could
// stay, and a large torus has more boxes than are priced: then the bound is lower than the cost.
//
// A box of 2x2 in a mesh of 2x3, with gang a on the two cells of the first column, b on one cell of the last: the box
// on the left costs a, that on the right b, which has one node in the way instead of two and is priced first.
//
// Costs O(boxes) for the order, and mostNodes cells at most for the prices.
func (h *victimSearch) searchBoxes() {
	exact := true
	for _, t := range h.ledger.Tree.tori() {
		within := h.memberCells(t)
		if len(within) < len(h.placedOn) {
			continue
		}
		cells, single := h.obstacles(t)
		exact = exact && single
		for _, box := range h.promising(t, cells, within) {
			if h.effort.nodes <= 0 {
				exact = false
				break
			}
			if c := h.price(t, cells, box); c.compare(h.best) < 0 {
				h.best = c
			}
		}
	}
	h.bound = 0
	if exact && h.best.found {
		h.bound = h.best.cost
	}
}

// promising returns the boxes of a torus that can be freed, those with fewest nodes to free first.
func (h *victimSearch) promising(t *torus, cells []obstacle, within []int) []grid.Box {
	hopeless, taken, must := make([]bool, len(cells)), make([]bool, len(cells)), make([]bool, len(cells))
	for cell, o := range cells {
		hopeless[cell], taken[cell] = o.hopeless, len(o.gangs) > 0
	}
	for _, cell := range within {
		must[cell] = true
	}
	never, held, has := t.grid.Counter(hopeless), t.grid.Counter(taken), t.grid.Counter(must)
	type ranked struct {
		box  grid.Box
		held int
	}
	var all []ranked
	for box := range t.grid.Boxes(h.gang.Box.Orientations()) {
		if never(box) == 0 && has(box) == len(within) {
			all = append(all, ranked{box, held(box)})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.held, b.held) })
	boxes := make([]grid.Box, len(all))
	for i, r := range all {
		boxes[i] = r.box
	}
	return boxes
}

// obstacle holds the gangs that block a cell for a gang: those that would have to leave, or hopeless.
type obstacle struct {
	gangs    []int
	hopeless bool
}

// obstacles returns those of each cell of a torus, and whether no node has several gangs to choose from.
func (h *victimSearch) obstacles(t *torus) (cells []obstacle, single bool) {
	cells, single = make([]obstacle, len(t.nodes)), true
	for cell, node := range t.nodes {
		o := &cells[cell]
		if node < 0 {
			o.hopeless = true
			continue
		}
		if h.opens(node, h.ledger.Free[node]) {
			continue
		}
		room := slices.Clone(h.ledger.Free[node])
		for _, held := range h.holds[node] {
			room = room.plus(held.demand)
			o.gangs = append(o.gangs, held.gang)
		}
		o.hopeless = !h.opens(node, room)
		single = single && len(o.gangs) <= 1
	}
	return cells, single
}

// price returns the cost of freeing a box; not found if it costs more than the best so far.
func (h *victimSearch) price(t *torus, cells []obstacle, box grid.Box) choice {
	c := choice{found: true}
	for cell := range t.grid.In(box) {
		h.effort.nodes--
		for _, gang := range cells[cell].gangs {
			if slices.Contains(c.victims, gang) {
				continue
			}
			c.victims = append(c.victims, gang)
			c.cost = addCosts(c.cost, h.running[gang].Cost)
			c.held += len(h.running[gang].Holds)
			if h.best.found && c.cost > h.best.cost {
				return choice{}
			}
		}
	}
	slices.Sort(c.victims)
	return c
}
