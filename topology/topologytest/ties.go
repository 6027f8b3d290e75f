package topologytest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Tidiest is the rule for ties, for a ring of one kind without segments, spares and placed members: among all ways to
// put so many members on each node that cost least, the one that leaves least behind. It evaluates every way to place
// the gang.
func (s Scene) Tidiest() (counts []int, ok bool) {
	g := s.grow()
	ways := s.cheapest()
	if len(ways) == 0 {
		return nil, false
	}
	best := -1
	for _, way := range ways {
		if v := g.around(way); best < 0 || g.compare(v, best) < 0 {
			best = v
		}
	}
	ways = slices.DeleteFunc(ways, func(way []int) bool { return g.around(way) != best })
	return g.prefer(best, ways)[0], true
}

// cheapest lists the numbers of members per node of every placement of least cost. Ranks in path order make a ring
// cross each level as often as it uses domains there, if they are at least two.
func (s Scene) cheapest() [][]int {
	var ways [][]int
	var least int64
	for _, way := range s.ways(0, len(s.Gang.Members)) {
		cost, ok := s.wayCost(way)
		if !ok || len(ways) > 0 && cost > least {
			continue
		}
		if len(ways) > 0 && cost < least {
			ways = nil
		}
		least = cost
		ways = append(ways, way)
	}
	return ways
}

// ways lists the numbers of members per node, from the given node on, that add up and fit the nodes.
func (s Scene) ways(node, members int) [][]int {
	if node == len(s.Nodes) {
		if members == 0 {
			return [][]int{{}}
		}
		return nil
	}
	var ways [][]int
	for here := range min(members, s.slots(node)) + 1 {
		for _, rest := range s.ways(node+1, members-here) {
			ways = append(ways, append([]int{here}, rest...))
		}
	}
	return ways
}

// slots returns the number of members that the node holds.
func (s Scene) slots(node int) int {
	if !s.Usable(node) {
		return 0
	}
	room := s.Room(s.Gang.Members[0].Shape, node, 1<<20)
	if room == 1<<20 { // members that take nothing
		room = len(s.Gang.Members)
	}
	if s.Gang.PerNode > 0 {
		room = min(room, s.Gang.PerNode)
	}
	return room
}

// wayCost returns the cost of a ring; false if the required level or the spread forbids it.
func (s Scene) wayCost(way []int) (int64, bool) {
	var cost int64
	weights := s.Weights()
	for l, w := range weights {
		domains, largest := s.used(way, l)
		if domains > 1 {
			cost += w * int64(domains)
		}
		if s.Gang.Required != "" && l == s.Level(s.Gang.Required) && domains > 1 {
			return 0, false
		}
		if s.Gang.Spread.Max > 0 && l == s.Level(s.Gang.Spread.Level) && largest > s.Gang.Spread.Max {
			return 0, false
		}
	}
	return cost, true
}

// used counts the groups of the level that hold members, and the members of the one that holds most.
func (s Scene) used(way []int, level int) (domains, largest int) {
	groups, _ := s.Groups(level)
	members := make([]int, len(s.Nodes))
	for n, held := range way {
		members[groups[n]] += held
	}
	for _, held := range members {
		if held > 0 {
			domains++
		}
	}
	return domains, slices.Max(members)
}

// grove is the tree in pre-order: the fleet first, then its domains and nodes.
type grove []limb

// twig is the place at which a limb grows: the fleet is at level -1, nodes are at level len(Levels).
type twig struct{ parent, level int }

// limb is the fleet, a domain or a node.
type limb struct {
	twig
	nodes    []int
	children []int
	slots    int
}

func (s Scene) grow() grove {
	var nodes []int
	for n := range s.Nodes {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b int) int { return natural(s.Nodes[a].Name, s.Nodes[b].Name) })
	var g grove
	s.sprout(&g, twig{-1, -1}, nodes)
	return g
}

// sprout adds a limb with all that is inside it.
func (s Scene) sprout(g *grove, at twig, nodes []int) {
	v := len(*g)
	*g = append(*g, limb{twig: at, nodes: nodes})
	if at.level == len(s.Levels) {
		(*g)[v].slots = s.slots(nodes[0])
	} else {
		s.branchOut(g, twig{v, at.level + 1}, nodes)
	}
	for u, b := range *g {
		if u > v && b.parent == v {
			(*g)[v].children = append((*g)[v].children, u)
			(*g)[v].slots += b.slots
		}
	}
	if s.Gang.Spread.Max > 0 && at.level == s.Level(s.Gang.Spread.Level) {
		(*g)[v].slots = min((*g)[v].slots, s.Gang.Spread.Max)
	}
}

// branchOut adds a limb for each value that the nodes have at the level; those that lack the label are last, and differ
// only at levels further in.
func (s Scene) branchOut(g *grove, at twig, nodes []int) {
	if at.level == len(s.Levels) {
		for _, n := range nodes {
			s.sprout(g, at, []int{n})
		}
		return
	}
	var values []string
	with := make(map[string][]int)
	for _, n := range nodes {
		value := s.label(n, at.level)
		if with[value] == nil && value != "" {
			values = append(values, value)
		}
		with[value] = append(with[value], n)
	}
	slices.SortFunc(values, natural)
	for _, value := range values {
		s.sprout(g, at, with[value])
	}
	if len(with[""]) > 0 {
		s.branchOut(g, twig{at.parent, at.level + 1}, with[""])
	}
}

// natural orders the names that Draw gives, a letter and a number without leading zeros.
func natural(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// around is the innermost limb that holds all members.
func (g grove) around(way []int) int {
	found := 0
	for v, b := range g {
		held := 0
		for n := range way {
			if slices.Contains(b.nodes, n) {
				held += way[n]
			}
		}
		if total := sum(way); held == total && b.level > g[found].level {
			found = v
		}
	}
	return found
}

func sum(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// compare orders limbs: further in, fewest slots, fewest slots of the limbs around, first in the tree.
func (g grove) compare(u, v int) int {
	if c := cmp.Compare(g[v].level, g[u].level); c != 0 {
		return c
	}
	for x, y := u, v; x >= 0 && y >= 0; x, y = g[x].parent, g[y].parent {
		if c := cmp.Compare(g[x].slots, g[y].slots); c != 0 {
			return c
		}
	}
	return cmp.Compare(u, v)
}

// prefer leaves, of ways to fill the limb that cost the same, the preferred one: its children, from the one with most
// slots to the one with fewest and equal ones from last to first, stay empty if they can, and else take as many as they
// can. Of children that look the same the first by name get most.
func (g grove) prefer(v int, all [][]int) [][]int {
	ways := all
	children := slices.Clone(g[v].children)
	slices.SortFunc(children, func(a, b int) int { return cmp.Or(cmp.Compare(g[b].slots, g[a].slots), b-a) })
	for _, c := range children {
		best := g[c].held(slices.MinFunc(ways, func(a, b []int) int {
			x, y := g[c].held(a), g[c].held(b)
			if x == 0 || y == 0 {
				return cmp.Compare(x, y)
			}
			return cmp.Compare(y, x)
		}))
		ways = slices.DeleteFunc(slices.Clone(ways), func(way []int) bool { return g[c].held(way) != best })
	}
	ways = g.traded(children, ways[0], all)
	for _, c := range children {
		ways = g.prefer(c, ways)
	}
	return ways
}

// traded leaves the ways in which the children hold as much as in the given one, but those that look the same have
// traded places.
func (g grove) traded(children, way []int, all [][]int) [][]int {
	held := make(map[int]int)
	for _, c := range children {
		held[c] = g[c].held(way)
	}
	inOrder := slices.Sorted(slices.Values(children))
	for i, a := range inOrder {
		for _, b := range inOrder[i+1:] {
			if g.look(a) == g.look(b) && held[a] < held[b] {
				held[a], held[b] = held[b], held[a]
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(way []int) bool {
		return slices.ContainsFunc(children, func(c int) bool { return g[c].held(way) != held[c] })
	})
}

// look returns the description of a limb without names.
func (g grove) look(v int) string {
	children := slices.Clone(g[v].children)
	slices.SortFunc(children, func(a, b int) int { return cmp.Or(cmp.Compare(g[b].slots, g[a].slots), b-a) })
	var text strings.Builder
	fmt.Fprint(&text, g[v].level, g[v].slots)
	for _, c := range children {
		if g[c].slots > 0 {
			fmt.Fprintf(&text, "(%s)", g.look(c))
		}
	}
	return text.String()
}

// held counts the members inside.
func (b limb) held(way []int) int {
	held := 0
	for _, n := range b.nodes {
		held += way[n]
	}
	return held
}
