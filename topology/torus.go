package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/topology/grid"
)

// The node labels of meshes and tori with fixed links: a name that all nodes of one share, its extents in nodes
// (8x8x16), the axes that close to a ring (a selection of xyz; without the label none does), and the node's own
// coordinates, from 0 (3-0-7).
const (
	LabelTorus      = "lockstep.dev/torus"
	LabelTorusShape = "lockstep.dev/torus-shape"
	LabelTorusRings = "lockstep.dev/torus-rings"
	LabelTorusAt    = "lockstep.dev/torus-at"
)

// axes are the names of a torus's axes.
const axes = "xyz"

// torusPosition is the position of a node in a torus.
type torusPosition struct {
	torus string
	size  grid.Size
	wraps [3]bool
	at    grid.Point
}

// torusText joins a node's labels about its position in a torus, so that they are stored as one string; "" for a node
// in none.
func torusText(labels map[string]string) string {
	name := labels[LabelTorus]
	if name == "" {
		return ""
	}
	return strings.Join([]string{name, labels[LabelTorusShape], labels[LabelTorusRings], labels[LabelTorusAt]}, "\x00")
}

// parseTorusText parses the output of torusText. It reports false if a label is missing or cannot be read, or the node
// would be outside.
func parseTorusText(text string) (torusPosition, bool) {
	parts := strings.Split(text, "\x00")
	if len(parts) != 4 {
		return torusPosition{}, false
	}
	p := torusPosition{torus: parts[0]}
	var err error
	if p.size, err = grid.ParseSize(parts[1]); err != nil {
		return torusPosition{}, false
	}
	for _, axis := range parts[2] {
		a := strings.IndexRune(axes, axis)
		if a < 0 {
			return torusPosition{}, false
		}
		p.wraps[a] = true
	}
	at, err := grid.ParsePoint(parts[3])
	if err != nil {
		return torusPosition{}, false
	}
	for a, n := range p.size {
		if at[a] >= n {
			return torusPosition{}, false
		}
	}
	p.at = at
	return p, true
}

// torus is a mesh or torus of the fleet: a grid of nodes.
type torus struct {
	name string
	grid grid.Grid
	size grid.Size
	// nodes[cell] is the tree index of the node there, -1 for none.
	nodes []int
	// cells[node] is its inverse.
	cells map[int]int
}

// newTori gathers the tori of a fleet, by name. Of nodes that contradict those before them in tree order, by another
// shape or by a cell that is taken, nothing is believed: they are in no torus.
func newTori(t *Tree) []*torus {
	byName := make(map[string]*torus)
	wraps := make(map[string][3]bool)
	var all []*torus
	for _, node := range t.layout().first().nodes {
		p, ok := parseTorusText(t.roster.entry(node).torusText)
		if !ok {
			continue
		}
		known := byName[p.torus]
		if known == nil {
			g, err := grid.New(p.size, p.wraps)
			if err != nil {
				continue
			}
			known = &torus{
				name:  p.torus,
				grid:  g,
				size:  p.size,
				nodes: make([]int, p.size.Cells()),
				cells: make(map[int]int),
			}
			for cell := range known.nodes {
				known.nodes[cell] = -1
			}
			byName[p.torus], wraps[p.torus] = known, p.wraps
			all = append(all, known)
		}
		cell := known.grid.Index(p.at)
		if known.size != p.size || wraps[p.torus] != p.wraps || known.nodes[cell] >= 0 {
			continue
		}
		known.nodes[cell], known.cells[node] = node, cell
	}
	slices.SortFunc(all, func(a, b *torus) int { return compareValues(a.name, b.name) })
	return all
}

// tori returns the fleet's meshes and tori, made on first use.
func (t *Tree) tori() []*torus {
	t.toriOnce.Do(func() { t.allTori = newTori(t) })
	return t.allTori
}

// describe lists the names and sizes of tori for a message.
func describe(all []*torus) string {
	parts := make([]string, len(all))
	for i, t := range all {
		parts[i] = fmt.Sprintf("%s is %s", t.name, t.size)
	}
	return strings.Join(parts, ", ")
}
