package grid

import (
	"fmt"
	"iter"
)

// Choice is the best box for a shape.
type Choice struct {
	Box Box
	// Blocked is the number of the box's cells that are not free. The shape fits if it is 0; else this is the box that
	// lacks least.
	Blocked int
	// Links is the number of links between the box and free cells outside it. A box among taken cells and walls has
	// few, and leaves the free cells in one piece.
	Links int
}

// Fits reports whether all cells of the box are free.
func (c Choice) Fits() bool { return c.Blocked == 0 }

// better reports whether c is preferred to d. Of equal choices the first one tried wins.
func (c Choice) better(d Choice) bool {
	if c.Blocked != d.Blocked {
		return c.Blocked < d.Blocked
	}
	return c.Links < d.Links
}

// Want is a question about boxes. Free has one entry per cell, by Index. Shapes are the allowed orientations, see
// Size.Orientations. Within holds cells that must be in the box, nil for none.
type Want struct {
	Free   []bool
	Shapes []Size
	Within []int
}

// Best returns the box with the fewest blocked cells, of these the one with the fewest links to free cells, then the
// first of shapes, then the first anchor. It reports false if no box of any shape is in the grid and around the cells
// that must be in it.
//
// Sums of all boxes from the origin make every box an addition of eight numbers, so a decision costs
// O(cells × shapes), whatever the size of the shapes. Wrapped axes are summed twice around.
func (g Grid) Best(want Want) (Choice, bool, error) {
	if len(want.Free) != g.size.Cells() {
		return Choice{}, false, fmt.Errorf(
			"grid %v: free has %d cells; want %d",
			g.size,
			len(want.Free),
			g.size.Cells(),
		)
	}
	for _, s := range want.Shapes {
		if err := s.check(); err != nil {
			return Choice{}, false, fmt.Errorf("shape %v: %w", s, err)
		}
	}
	t := g.sum(want.Free)
	within, err := g.within(want.Within)
	if err != nil {
		return Choice{}, false, err
	}
	var best Choice
	found := false
	for _, s := range want.Shapes {
		ends, ok := g.anchors(s)
		if !ok {
			continue
		}
		c := t.bestOf(s, ends, within)
		if fits := c.Blocked <= s.Cells(); fits && (!found || c.better(best)) {
			best, found = c, true
		}
	}
	return best, found, nil
}

// needed counts the cells that must be in a box.
type needed struct {
	*sums
	count int
}

// within sums the cells that must be in a box, nil for none.
func (g Grid) within(cells []int) (*needed, error) {
	if len(cells) == 0 {
		return nil, nil
	}
	must := make([]bool, g.size.Cells())
	n := &needed{}
	for _, c := range cells {
		if c < 0 || c >= len(must) {
			return nil, fmt.Errorf("grid %v: there is no cell %d", g.size, c)
		}
		if !must[c] {
			must[c] = true
			n.count++
		}
	}
	n.sums = g.sum(must)
	return n, nil
}

// in reports whether all of them are in the box.
func (n *needed) in(b Box) bool { return n == nil || n.free(b) == n.count }

// Counter returns a function that counts the marked cells of a box, from sums, so that its size does not matter. marked
// has one entry per cell.
func (g Grid) Counter(marked []bool) func(Box) int { return g.sum(marked).free }

// Boxes yields every box of the shapes in the order in which Best tries them.
func (g Grid) Boxes(shapes []Size) iter.Seq[Box] {
	return func(yield func(Box) bool) {
		for _, s := range shapes {
			ends, _ := g.anchors(s) // without cells where there is none
			for i := range ends.Cells() {
				at := Point{i / (ends[1] * ends[2]), i / ends[2] % ends[1], i % ends[2]}
				if !yield(Box{at, s}) {
					return
				}
			}
		}
	}
}

// anchors returns the number of anchors along each axis that give different boxes. It reports false if there is none.
func (g Grid) anchors(s Size) (ends Size, ok bool) {
	for a, n := range g.size {
		switch {
		case s[a] > n:
			return Size{}, false
		case g.wraps[a] && s[a] < n:
			ends[a] = n
		default:
			ends[a] = n - s[a] + 1
		}
	}
	return ends, true
}

// sums holds the number of free cells of every box from the origin, wrapped axes twice around.
type sums struct {
	grid  Grid
	sides Size // one more than the summed cells along each axis
	upTo  []int32
}

// sum makes the sums of a state.
func (g Grid) sum(free []bool) *sums {
	t := &sums{grid: g}
	for a, n := range g.size {
		if t.sides[a] = n + 1; g.wraps[a] {
			t.sides[a] += n
		}
	}
	t.upTo = make([]int32, t.sides.Cells())
	for x := 1; x < t.sides[0]; x++ {
		for y := 1; y < t.sides[1]; y++ {
			row := g.Index(Point{(x - 1) % g.size[0], (y - 1) % g.size[1], 0})
			inRow := int32(0)
			for z := 1; z < t.sides[2]; z++ {
				if free[row+(z-1)%g.size[2]] {
					inRow++
				}
				t.upTo[t.at(x, y, z)] = inRow + t.upTo[t.at(x-1, y, z)] + t.upTo[t.at(x, y-1, z)] - t.upTo[t.at(x-1, y-1, z)]
			}
		}
	}
	return t
}

// at returns the place of a sum.
func (t *sums) at(x, y, z int) int { return (x*t.sides[1]+y)*t.sides[2] + z }

// free returns the number of free cells in a box.
func (t *sums) free(b Box) int {
	x, y, z := b.At[0], b.At[1], b.At[2]
	u, v, w := x+b.Size[0], y+b.Size[1], z+b.Size[2]
	far := t.upTo[t.at(u, v, w)] - t.upTo[t.at(u, v, z)] - t.upTo[t.at(u, y, w)] + t.upTo[t.at(u, y, z)]
	near := t.upTo[t.at(x, v, w)] - t.upTo[t.at(x, v, z)] - t.upTo[t.at(x, y, w)] + t.upTo[t.at(x, y, z)]
	return int(far - near)
}

// bestOf returns the best box of one orientation, with more blocked cells than it has if there is none. Links are
// counted only where they can decide.
func (t *sums) bestOf(s, ends Size, within *needed) Choice {
	cells := s.Cells()
	best := Choice{Blocked: cells + 1}
	for x := range ends[0] {
		for y := range ends[1] {
			for z := range ends[2] {
				c := Choice{Box: Box{Point{x, y, z}, s}}
				if c.Blocked = cells - t.free(c.Box); c.Blocked > best.Blocked || !within.in(c.Box) {
					continue
				}
				if c.Links = t.links(c.Box); c.better(best) {
					best = c
				}
			}
		}
	}
	return best
}

// links counts the links from a box to free cells outside. An axis that the box fills has none.
func (t *sums) links(b Box) int {
	links := 0
	for a, n := range t.grid.size {
		if b.Size[a] == n {
			continue
		}
		for _, beside := range [...]int{b.At[a] - 1, b.At[a] + b.Size[a]} {
			if (beside < 0 || beside >= n) && !t.grid.wraps[a] {
				continue
			}
			face := b
			face.At[a], face.Size[a] = (beside+n)%n, 1
			links += t.free(face)
		}
	}
	return links
}
