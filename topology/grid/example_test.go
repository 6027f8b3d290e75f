package grid_test

import (
	"fmt"
	"log"
	"slices"

	"github.com/lockstep-project/lockstep/topology/grid"
)

// A mesh of 3x4 cells; cell 0-1 is taken. A box of 2x2 at 0-0 is one cell short. Of the free ones the one in the corner
// has two links to free cells below and one beside; the one at 1-0 has two above and beside, and is no better for it.
func ExampleGrid_Best() {
	g, err := grid.New(grid.Size{3, 4, 1}, [3]bool{})
	if err != nil {
		log.Fatal(err)
	}
	free := slices.Repeat([]bool{true}, 12)
	free[g.Index(grid.Point{0, 1, 0})] = false
	c, ok, err := g.Best(grid.Want{Free: free, Shapes: []grid.Size{{2, 2, 1}}})
	fmt.Println("at", c.Box.At, "blocked", c.Blocked, "links", c.Links, ok, err)
	// Output: at [0 2 0] blocked 0 links 3 true <nil>
}
