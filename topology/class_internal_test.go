package topology

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// Nodes of a fleet change one by one between two questions of one gang, which leaves classes behind: a book retains no
// more than some bytes a vertex, and nothing of the gang. Nodes that hold one member each have small fronts, and those
// are retained.
func TestBook_BoundsWhatItRetains(t *testing.T) {
	for name, most := range map[string]int64{"one member a node": 1, "up to eight members a node": 8} {
		t.Run(name, func(t *testing.T) {
			const nodes = 2048
			described := make([]Node, nodes)
			l := Ledger{Free: make([]Capacity, nodes)}
			for i := range described {
				described[i] = Node{Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{
					"block": strconv.Itoa(i / 256), "rack": strconv.Itoa(i / 16),
				}}
				l.Free[i] = Capacity{most}
			}
			var err error
			l.Tree, err = NewTree(
				[]Level{{Name: "block", Key: "block", Weight: 50}, {Name: "rack", Key: "rack", Weight: 50}},
				described,
			)
			if err != nil {
				t.Fatal(err)
			}
			g := Gang{Name: "train", Shapes: []Shape{{Demand: Capacity{1}}}, Members: make([]Member, nodes/2)}
			b, r := NewBook(l), rand.New(rand.NewPCG(1, 2))
			retained, largest := 0, 0
			for range 200 {
				b.Put(r.IntN(nodes), Capacity{r.Int64N(most + 1)})
				if _, short, err := Place(b.Ledger(), g); short != nil || err != nil {
					t.Fatal(short, err)
				}
				for _, table := range b.notes.tables {
					if c := table.classes; c != nil {
						retained, largest = retained+1, max(largest, c.bytes())
						if c.solver != nil {
							t.Fatal("the classes hold on to the question")
						}
					}
				}
			}
			if vertices := nodes + nodes/16 + nodes/256 + 1; largest > 64<<10+32*vertices {
				t.Errorf("%d bytes are retained for %d vertices", largest, vertices)
			}
			if most == 1 && retained == 0 {
				t.Error("nothing is retained between two questions")
			}
			t.Logf("retained after %d of 200 questions, at most %d bytes", retained, largest)
		})
	}
}
