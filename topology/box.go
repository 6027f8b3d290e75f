package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/topology/grid"
)

// boxed reports whether the gang asks for a box of nodes.
func (g Gang) boxed() bool { return g.Box != (grid.Size{}) }

// perCell is the number of members on each node of the box.
func (g Gang) perCell() int { return len(g.Members) / g.Box.Cells() }

// box checks a gang's box: which rules it can be combined with, and whether a torus could ever hold it. The level of
// tori becomes the required one.
func (c *checker) box(r *rules) error {
	if !c.g.boxed() {
		return nil
	}
	what := "box of " + c.g.Box.String()
	at, ok := c.l.Tree.Level(LabelTorus)
	switch {
	case !ok:
		return c.fail(ErrLevel, knownLevels(c.l.Tree.levels), "%s in one torus (%s)", what, LabelTorus)
	case min(c.g.Box[0], c.g.Box[1], c.g.Box[2]) < 1:
		return c.fail(ErrNegative, "every extent is at least 1", "%s", what)
	case r.required >= 0 && r.required != at:
		return c.fail(
			ErrCombination,
			"a box is in one torus: leave the required level out",
			"%s in one %s",
			what,
			c.g.Required,
		)
	case c.g.Segment.Size > 0,
		c.g.Spread.Max > 0,
		c.g.Spares.Nodes > 0,
		c.g.Min%len(c.g.Members) > 0,
		len(kinds(c.g)) > 1:
		return c.fail(
			ErrCombination,
			"a box has members of one kind, and no segments, spread, spares or elastic size",
			"%s",
			what,
		)
	case len(c.g.Members)%c.g.Box.Cells() != 0:
		return c.fail(ErrUnequal, "", "%s nodes for %d members", what, len(c.g.Members))
	case c.g.PerNode > 0 && c.g.perCell() > c.g.PerNode:
		return c.fail(
			ErrCombination,
			"",
			"%s with %d members on a node, and the limit of %d per node",
			what,
			c.g.perCell(),
			c.g.PerNode,
		)
	}
	all := c.l.Tree.tori()
	turns := c.g.Box.Orientations()
	if !slices.ContainsFunc(all, func(t *torus) bool { return t.admits(turns) }) {
		return c.fail(ErrTooLarge, describe(all), "%s", what)
	}
	r.required = at
	return nil
}

// admits reports whether the torus, empty, has room for a box in one of the orientations.
func (t *torus) admits(turns []grid.Size) bool {
	return slices.ContainsFunc(turns, func(s grid.Size) bool {
		return s[0] <= t.size[0] && s[1] <= t.size[1] && s[2] <= t.size[2]
	})
}

// boxIn is the best box in a torus.
type boxIn struct {
	*torus
	grid.Choice
}

// boxes returns the best box of each torus that could hold one, the best first: with the fewest nodes to free, then
// with the fewest links to free nodes around it, so that the remaining free nodes stay in one piece, then in the first
// torus by name.
func (a *ask) boxes() []boxIn {
	var found []boxIn
	turns := a.gang.Box.Orientations()
	for _, t := range a.ledger.Tree.tori() {
		within := a.memberCells(t)
		if len(within) < len(a.placedOn) || !t.admits(turns) {
			continue // members run in another torus
		}
		choice, ok, err := t.grid.Best(grid.Want{Free: a.open(t), Shapes: turns, Within: within})
		if ok && err == nil {
			found = append(found, boxIn{t, choice})
		}
	}
	slices.SortStableFunc(found, func(x, y boxIn) int {
		return cmp.Or(cmp.Compare(x.Blocked, y.Blocked), cmp.Compare(x.Links, y.Links))
	})
	return found
}

// memberCells are the cells of the torus in which members run.
func (a *ask) memberCells(t *torus) []int {
	var cells []int
	for node := range a.placedOn {
		if cell, ok := t.cells[node]; ok {
			cells = append(cells, cell)
		}
	}
	slices.Sort(cells)
	return cells
}

// open returns the cells of a torus that the gang could use now.
func (a *ask) open(t *torus) []bool {
	free := make([]bool, len(t.nodes))
	for cell, node := range t.nodes {
		free[cell] = node >= 0 && a.opens(node, a.ledger.Free[node])
	}
	return free
}

// opens reports whether a node with that much room takes the members of a cell.
func (a *ask) opens(node int, room Capacity) bool {
	needed := a.gang.perCell() - a.placedOn[node]
	k := a.kinds[0]
	return needed >= 0 && (needed == 0 || !a.unlabelled(node) && !k.barred(node) && k.room(room) >= needed)
}

// boxPlan places a gang in a box. Its bound is the cost of the best place in a torus without the box.
func (a *ask) boxPlan() (plan, bool, error) {
	found := a.boxes()
	if len(found) == 0 || !found[0].Fits() {
		return plan{}, false, nil
	}
	loose := a.gang
	loose.Box = grid.Size{}
	relaxed, ok, err := newAsk(a.ledger, loose, a.rules).plan()
	if !ok || err != nil {
		return plan{}, false, err
	}
	return plan{nodes: a.fillBox(found[0]), bound: relaxed.bound, least: relaxed.least}, true, nil
}

// fillBox gives the members their nodes: running ones stay in theirs, the others fill the box in the order of its
// cells.
func (a *ask) fillBox(b boxIn) []int {
	var slots []int
	for _, cell := range b.grid.Cells(b.Box) {
		for range a.gang.perCell() - a.placedOn[b.nodes[cell]] {
			slots = append(slots, b.nodes[cell])
		}
	}
	nodes := make([]int, len(a.gang.Members))
	for rank, m := range a.gang.Members {
		if m.Placed {
			nodes[rank] = m.Node
			continue
		}
		nodes[rank], slots = slots[0], slots[1:]
	}
	return nodes
}

// explainBox fills in the tori that lack the fewest nodes for the box.
func (a *ask) explainBox(s *Shortfall) {
	s.Box = a.gang.Box.String()
	for i, b := range a.boxes() {
		if i == nearest {
			break
		}
		per := a.gang.perCell()
		near := Near{Holds: (b.Box.Size.Cells() - b.Blocked) * per, Lacks: b.Blocked * per}
		for _, cell := range b.grid.Cells(b.Box) {
			node := b.nodes[cell]
			if node < 0 {
				continue
			}
			if near.Domain.Path == nil {
				near.Domain, _ = a.ledger.Tree.Domain(node, a.rules.required)
			}
			if !a.opens(node, a.ledger.Free[node]) && !a.kinds[0].barred(node) {
				near.Full++
			}
		}
		s.Nearest = append(s.Nearest, near)
	}
}

// missing names the box that is not there.
func (s *Shortfall) missing() string {
	if s.Box == "" {
		return ""
	}
	return fmt.Sprintf("no torus has a free box of %s nodes", s.Box)
}
