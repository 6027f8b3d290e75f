package grid_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology/grid"
)

// scene is a grid in some state, as the twin sees it.
type scene struct {
	size  grid.Size
	wraps [3]bool
	free  []bool
	// must are the cells that have to be in the box.
	must []int
}

// draw makes a random state with about the given share free.
func draw(r *rand.Rand, size grid.Size, wraps [3]bool, share float64) scene {
	s := scene{size: size, wraps: wraps, free: make([]bool, size.Cells())}
	for i := range s.free {
		s.free[i] = r.Float64() < share
	}
	return s
}

// twinAt returns the cell of a point, false beyond a wall. It shares nothing with the package.
func (s scene) twinAt(p [3]int) (int, bool) {
	cell := 0
	for a, n := range s.size {
		if p[a] < 0 || p[a] >= n {
			if !s.wraps[a] {
				return 0, false
			}
			p[a] = (p[a] + n) % n
		}
		cell = cell*n + p[a]
	}
	return cell, true
}

// twinBox returns blocked cells and links of one box by sets, false if it does not lie in the grid.
func (s scene) twinBox(at [3]int, size grid.Size) (blocked, links int, ok bool) {
	inside := map[int]bool{}
	left := map[int]bool{}
	for _, cell := range s.must {
		left[cell] = true
	}
	var points [][3]int
	for i := range size.Cells() {
		p := [3]int{at[0] + i/(size[1]*size[2]), at[1] + i/size[2]%size[1], at[2] + i%size[2]}
		cell, ok := s.twinAt(p)
		if !ok || inside[cell] {
			return 0, 0, false
		}
		inside[cell] = true
		delete(left, cell)
		points = append(points, p)
		if !s.free[cell] {
			blocked++
		}
	}
	for _, p := range points {
		for a := range p {
			for _, step := range []int{-1, 1} {
				q := p
				q[a] += step
				if cell, ok := s.twinAt([3]int{q[0] % s.twinRing(0), q[1] % s.twinRing(1), q[2] % s.twinRing(2)}); ok &&
					!inside[cell] && s.free[cell] {
					links++
				}
			}
		}
	}
	return blocked, links, len(left) == 0
}

// twinRing is the period of an axis, out of reach for one that does not wrap.
func (s scene) twinRing(a int) int {
	if s.wraps[a] {
		return s.size[a]
	}
	return 1 << 30
}

// twinBest tries every anchor of every shape.
func (s scene) twinBest(shapes []grid.Size) (best grid.Choice, found bool) {
	for _, size := range shapes {
		for i := range s.size.Cells() {
			at := [3]int{i / (s.size[1] * s.size[2]), i / s.size[2] % s.size[1], i % s.size[2]}
			if size[0] > s.size[0] || size[1] > s.size[1] || size[2] > s.size[2] {
				continue
			}
			blocked, links, ok := s.twinBox(at, size)
			if ok && (!found || blocked < best.Blocked || blocked == best.Blocked && links < best.Links) {
				best, found = grid.Choice{Box: grid.Box{At: at, Size: size}, Blocked: blocked, Links: links}, true
			}
		}
	}
	return best, found
}

func (s scene) best(tb testing.TB, shapes []grid.Size) (grid.Grid, grid.Choice, bool) {
	tb.Helper()
	g, err := grid.New(s.size, s.wraps)
	if err != nil {
		tb.Fatal(err)
	}
	c, found, err := g.Best(grid.Want{Free: s.free, Shapes: shapes, Within: s.must})
	if err != nil {
		tb.Fatal(err)
	}
	return g, c, found
}

func TestBest_AnswersLikeTheTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fits, lacks, never := 0, 0, 0
	for i := range 4000 {
		size := grid.Size{1 + r.IntN(5), 1 + r.IntN(5), 1 + r.IntN(4)}
		s := draw(r, size, [3]bool{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0}, r.Float64())
		if r.IntN(3) == 0 {
			for range 1 + r.IntN(3) {
				s.must = append(s.must, r.IntN(size.Cells()))
			}
		}
		shapes := grid.Size{1 + r.IntN(4), 1 + r.IntN(4), 1 + r.IntN(4)}.Orientations()
		g, got, found := s.best(t, shapes)
		want, wantFound := s.twinBest(shapes)
		if got != want || found != wantFound {
			t.Fatalf("scene %d: %+v, shapes %v: got %+v %v, want %+v %v", i, s, shapes, got, found, want, wantFound)
		}
		blocked := 0
		for _, cell := range g.Cells(got.Box) {
			if !s.free[cell] {
				blocked++
			}
		}
		switch {
		case !found:
			never++
		case blocked != got.Blocked:
			t.Fatalf("scene %d: Cells has %d blocked, the choice %d", i, blocked, got.Blocked)
		case got.Fits():
			fits++
		default:
			lacks++
		}
	}
	if min(fits, lacks, never) < 200 {
		t.Errorf("scenes that fit %d, lack %d, never fit %d: want 200 of each", fits, lacks, never)
	}
}

func TestBest_BoxAcrossTheEdgeNeedsWraparound(t *testing.T) {
	s := scene{size: grid.Size{1, 4, 1}, free: []bool{true, false, false, true}}
	pair := []grid.Size{{1, 2, 1}}
	if _, c, _ := s.best(t, pair); c.Fits() || c.Blocked != 1 {
		t.Errorf("mesh: got %+v, want one blocked cell", c)
	}
	s.wraps[1] = true
	g, c, _ := s.best(t, pair)
	if !c.Fits() || !slices.Equal(g.Cells(c.Box), []int{3, 0}) {
		t.Errorf("ring: got %+v, want cells 3 and 0", c)
	}
}

func TestBest_TakesTheCornerThatLeavesTheRestWhole(t *testing.T) {
	s := draw(rand.New(rand.NewPCG(1, 1)), grid.Size{4, 4, 1}, [3]bool{}, 2)
	for _, cell := range []int{2, 3, 6, 7} {
		s.free[cell] = false
	}
	_, c, _ := s.best(t, []grid.Size{{2, 2, 1}})
	if want := (grid.Box{At: grid.Point{0, 0, 0}, Size: grid.Size{2, 2, 1}}); c.Box != want || c.Links != 2 {
		t.Errorf("got %+v, want %+v with 2 links, so that 4x2 stays free", c, want)
	}
}

func TestBest_BadInput(t *testing.T) {
	for text, want := range map[string]string{
		"4":              `shape "4": want two or three numbers joined by x, such as 4x4x4`,
		"4x4x4x4":        `shape "4x4x4x4": want two or three numbers`,
		"4xfour":         `shape "4xfour": "four" is no number; want a shape such as 4x4x4`,
		"4x0":            `shape "4x0": extent 0: want at least 1`,
		"4x-2x1":         `shape "4x-2x1": extent -2: want at least 1`,
		"2000x2000x2000": `shape "2000x2000x2000": too large: want at most 1048576 cells`,
	} {
		if _, err := grid.ParseSize(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	g, err := grid.New(grid.Size{2, 2, 1}, [3]bool{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Best(
		grid.Want{Free: make([]bool, 3)},
	); err == nil ||
		err.Error() != "grid 2x2x1: free has 3 cells; want 4" {
		t.Errorf("short state: got %v", err)
	}
	if _, _, err := g.Best(grid.Want{Free: make([]bool, 4), Shapes: []grid.Size{{0, 1, 1}}}); err == nil {
		t.Error("an empty shape is accepted")
	}
	if _, _, err := g.Best(grid.Want{Free: make([]bool, 4), Within: []int{4}}); err == nil {
		t.Error("a cell outside the grid can be in a box")
	}
	if _, err := grid.New(grid.Size{0, 1, 1}, [3]bool{}); err == nil {
		t.Error("an empty grid is accepted")
	}
}

func TestParseSize_TwoAndThreeDimensions(t *testing.T) {
	for text, want := range map[string]grid.Size{"2x4": {2, 4, 1}, "4x4x8": {4, 4, 8}} {
		if got, err := grid.ParseSize(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	if n := len((grid.Size{2, 4, 8}).Orientations()) + len((grid.Size{2, 4, 4}).Orientations()); n != 6+3 {
		t.Errorf("orientations: got %d, want 6 and 3", n)
	}
}

func BenchmarkBest(b *testing.B) {
	for _, size := range []grid.Size{{8, 8, 16}, {16, 16, 16}, {16, 16, 24}, {16, 32, 32}} {
		s := draw(rand.New(rand.NewPCG(1, 2)), size, [3]bool{true, true, true}, 0.9)
		shapes := grid.Size{2, 4, 4}.Orientations()
		b.Run(fmt.Sprintf("cells=%d/by=sums", size.Cells()), func(b *testing.B) {
			for b.Loop() {
				s.best(b, shapes)
			}
		})
		b.Run(fmt.Sprintf("cells=%d/by=twin", size.Cells()), func(b *testing.B) {
			for b.Loop() {
				s.twinBest(shapes)
			}
		})
	}
}
