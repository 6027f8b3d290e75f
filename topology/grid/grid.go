// Package grid decides whether a free box of a wished shape exists in a mesh or torus of two or three dimensions, and
// which box to take. It knows no node, gang or tree: the caller numbers the cells (hosts, or chips) and names those
// that are free and healthy.
//
// Partitions that carry labels (GKE's 4x4x4 → 2x4x4 → … → 2x2x1) are nested domains and need no geometry, and neither
// do slices of whole cubes, which an optical switch joins wherever they are. Static meshes and tori without partition
// labels need it.
package grid

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Size holds the number of cells along each axis, each at least 1. A grid or box of two dimensions has 1 along the
// third.
type Size [3]int

// Point is a cell by its coordinates, from 0.
type Point [3]int

// Box is an axis-aligned box: cells At … At+Size-1 along each axis, continued at 0 where the axis wraps around.
type Box struct {
	At   Point
	Size Size
}

// Grid is a mesh. Each axis may close to a ring.
type Grid struct {
	size  Size
	wraps [3]bool
}

// maxCells bounds grids; the largest TPU pod has 9216 chips.
const maxCells = 1 << 20

// New returns a grid of this size. wraps marks the axes that are rings.
func New(size Size, wraps [3]bool) (Grid, error) {
	if err := size.check(); err != nil {
		return Grid{}, fmt.Errorf("grid %v: %w", size, err)
	}
	return Grid{size, wraps}, nil
}

// check reports an extent that is out of range.
func (s Size) check() error {
	left := maxCells
	for _, n := range s {
		if n < 1 {
			return fmt.Errorf("extent %d: want at least 1", n)
		}
		if left /= n; left == 0 {
			return fmt.Errorf("too large: want at most %d cells", maxCells)
		}
	}
	return nil
}

// ParseSize reads a shape such as 4x4x4, or 2x4 in two dimensions.
func ParseSize(text string) (Size, error) {
	parts := strings.Split(text, "x")
	if len(parts) != 2 && len(parts) != 3 {
		return Size{}, fmt.Errorf("shape %q: want two or three numbers joined by x, such as 4x4x4", text)
	}
	s := Size{1, 1, 1}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return Size{}, fmt.Errorf("shape %q: %q is no number; want a shape such as 4x4x4", text, part)
		}
		s[i] = n
	}
	if err := s.check(); err != nil {
		return Size{}, fmt.Errorf("shape %q: %w", text, err)
	}
	return s, nil
}

// ParsePoint reads coordinates such as 3-0-7, or 3-0 in two dimensions; each is at least 0.
func ParsePoint(text string) (Point, error) {
	parts := strings.Split(text, "-")
	if len(parts) != 2 && len(parts) != 3 {
		return Point{}, fmt.Errorf("coordinates %q: want two or three numbers joined by -, such as 3-0-7", text)
	}
	var p Point
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return Point{}, fmt.Errorf("coordinates %q: %q is no number; want coordinates such as 3-0-7", text, part)
		}
		p[i] = int(n)
	}
	return p, nil
}

// String returns the shape with all three extents, such as 2x4x1.
func (s Size) String() string { return fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]) }

// Cells returns the number of cells.
func (s Size) Cells() int { return s[0] * s[1] * s[2] }

// Orientations returns the distinct ways to turn a shape, itself first.
func (s Size) Orientations() []Size {
	turns := [...][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	seen := make(map[Size]bool, len(turns))
	var all []Size
	for _, t := range turns {
		if o := (Size{s[t[0]], s[t[1]], s[t[2]]}); !seen[o] {
			seen[o] = true
			all = append(all, o)
		}
	}
	return all
}

// Index returns the number of a cell: the last axis counts fastest.
func (g Grid) Index(p Point) int { return (p[0]*g.size[1]+p[1])*g.size[2] + p[2] }

// Cells returns the numbers of a box's cells, in the order of their coordinates inside the box.
func (g Grid) Cells(b Box) []int {
	cells := make([]int, 0, b.Size.Cells())
	for cell := range g.In(b) {
		cells = append(cells, cell)
	}
	return cells
}

// In yields them.
func (g Grid) In(b Box) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range b.Size.Cells() {
			x, y, z := i/(b.Size[1]*b.Size[2]), i/b.Size[2]%b.Size[1], i%b.Size[2]
			if !yield(g.Index(Point{(b.At[0] + x) % g.size[0], (b.At[1] + y) % g.size[1], (b.At[2] + z) % g.size[2]})) {
				return
			}
		}
	}
}
