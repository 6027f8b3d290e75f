package topologytest

import (
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Rule is one of the things a gang may ask for.
type Rule int

// The rules. The last three change the cost of a placement and never whether there is one.
const (
	Required Rule = iota
	Segments
	Spread
	Spares
	PerNode
	Elastic
	Placed
	Preferred
	Communication
	Weights
)

// Rules are all rules but the given ones.
func Rules(without ...Rule) []Rule {
	var rules []Rule
	for r := Required; r <= Weights; r++ {
		if !slices.Contains(without, r) {
			rules = append(rules, r)
		}
	}
	return rules
}

// Options bound the scenes that Draw draws.
type Options struct {
	// Shapes is the most shapes that differ.
	Shapes int
	// Rules are those to choose from, Always those that every gang has.
	Rules, Always []Rule
	// Accelerator adds accelerator levels after those of the network.
	Accelerator bool
}

// drawing is a scene on its way. Each choice is one call of choose, which returns a number in [0, n): a random source
// or the bytes of a fuzzer.
type drawing struct {
	Scene
	options   Options
	choose    func(n int) int
	resources int
	// whole nodes hold one member or none; others some.
	whole bool
}

// Draw makes a scene small enough to try every assignment. Few rules at a time, or most scenes would have no place.
func Draw(options Options, choose func(n int) int) Scene {
	d := &drawing{options: options, choose: choose, resources: 1 + oneIn(4, choose), whole: choose(2) == 0}
	d.levels()
	d.nodes()
	d.shapes()
	d.members()
	rules := slices.DeleteFunc(slices.Clone(options.Rules), func(r Rule) bool { return r >= Preferred })
	for range min([]int{0, 1, 1, 1, 2, 2, 2, 3}[choose(8)], len(rules)) {
		at := choose(len(rules))
		d.rule(rules[at])
		rules = slices.Delete(rules, at, at+1)
	}
	for _, r := range options.Always {
		d.rule(r)
	}
	for _, r := range options.Rules {
		if r >= Preferred && choose(3) == 0 {
			d.rule(r)
		}
	}
	d.settle()
	return d.Scene
}

// oneIn is 1 in one of n cases, else 0.
func oneIn(n int, choose func(n int) int) int {
	if choose(n) == n-1 {
		return 1
	}
	return 0
}

func (d *drawing) levels() {
	network, accelerators := 1+d.choose(3), 0
	if d.options.Accelerator {
		network, accelerators = 1+d.choose(2), 1+d.choose(2)
	}
	for l := range network + accelerators {
		level := topology.Level{Name: fmt.Sprintf("l%d", l), Key: fmt.Sprintf("test/level-%d", l)}
		level.Accelerator = l >= network
		d.Levels = append(d.Levels, level)
	}
}

// nodes are called n7 … n14, since natural and plain order differ there.
func (d *drawing) nodes() {
	gaps := d.choose(4) == 3
	fans := make([]int, len(d.Levels))
	for l := range fans {
		fans[l] = 1 + d.choose(3)
	}
	for n := range 1 + max(d.choose(8), d.choose(8)) {
		labels := map[string]string{}
		for l, level := range d.Levels {
			if !gaps || oneIn(6, d.choose) == 0 {
				labels[level.Key] = fmt.Sprintf("v%d", 1+d.choose(fans[l]))
			}
		}
		d.Nodes = append(d.Nodes, topology.Node{Name: fmt.Sprintf("n%d", n+7), Labels: labels})
		free := make(topology.Capacity, d.resources)
		for r := range free {
			free[r] = int64(d.choose(4))
			if d.whole {
				free[r] = min(free[r], 1)
			}
		}
		d.Free = append(d.Free, free)
	}
}

func (d *drawing) shapes() {
	d.Gang.Name = "gang"
	for range 1 + d.choose(d.options.Shapes) {
		d.Gang.Shapes = append(d.Gang.Shapes, topology.Shape{Demand: d.takes(), Barred: d.bars()})
	}
	if oneIn(8, d.choose) == 1 { // one that does not differ, though other rules bar it from the same nodes
		alike := d.Gang.Shapes[0]
		alike.Barred = slices.Clone(alike.Barred)
		for n, rule := range alike.Barred {
			if rule != "" {
				alike.Barred[n] = "another rule"
			}
		}
		d.Gang.Shapes = append(d.Gang.Shapes, alike)
	}
}

// takes returns the demand of one more shape. Beside workers of whole nodes there are launchers, which take no node.
func (d *drawing) takes() topology.Capacity {
	demand := make(topology.Capacity, d.resources)
	for r := range demand {
		demand[r] = int64([]int{1, 1, 1, 2, 1, 1, 0, 1}[d.choose(8)])
		if d.whole {
			demand[r] = 1
		}
	}
	if d.whole && len(d.Gang.Shapes) > 0 {
		demand[0] = 0
	}
	return demand
}

// bars returns the nodes from which one more shape is barred: some, or none. Several launchers would not differ
// otherwise.
func (d *drawing) bars() []string {
	if d.choose(3) < 2 && (!d.whole || len(d.Gang.Shapes) < 2) {
		return nil
	}
	barred := make([]string, len(d.Nodes))
	for n := range barred {
		barred[n] = []string{"", "", "", "", "taint", "selector"}[d.choose(6)]
	}
	return barred
}

func (d *drawing) members() {
	most := 7
	if d.whole {
		most = 6
	}
	launcher := d.choose(2) == 1
	for m := range 1 + max(d.choose(most), d.choose(most)) {
		member := topology.Member{Name: fmt.Sprintf("m%d", m), Shape: d.choose(len(d.Gang.Shapes))}
		if launcher {
			member.Shape = (len(d.Gang.Shapes) - min(m, 1)) % len(d.Gang.Shapes)
		}
		member.Late = oneIn(8, d.choose) == 1
		d.Gang.Members = append(d.Gang.Members, member)
	}
}

func (d *drawing) rule(r Rule) {
	g := &d.Gang
	switch r {
	case Required:
		g.Required = d.level(len(d.Levels))
	case Segments:
		g.Segment = topology.Segment{Size: 1 + d.choose(4), Level: d.level(len(d.Levels)), Equal: d.choose(2) == 1}
	case Spread:
		g.Spread = topology.Spread{Max: 1 + d.choose(3), Level: d.level(len(d.Levels))}
	case Spares:
		g.Spares = topology.Spares{Nodes: 1 + oneIn(3, d.choose), Level: d.level(len(d.Levels) - 1)}
	case PerNode:
		g.PerNode = 1 + d.choose(2)
	case Elastic:
		g.Min = 1 + d.choose(len(g.Members))
	case Placed:
		g.Members[0].Placed = true // settle finds out where
	case Preferred:
		g.Preferred = d.level(len(d.Levels))
	case Communication:
		g.Communication = topology.Communication(d.choose(3))
	case Weights:
		for l := range d.Levels {
			d.Levels[l].Weight = []int64{400, 0, 25, 60, 1}[d.choose(5)]
		}
	}
}

// level returns the name or the label key of one of the levels down to the given one.
func (d *drawing) level(innermost int) string {
	at := d.choose(innermost + 1)
	byKey := oneIn(4, d.choose) == 1
	switch {
	case at == len(d.Levels) && byKey:
		return "kubernetes.io/hostname"
	case at == len(d.Levels):
		return topology.LevelNode
	case byKey:
		return d.Levels[at].Key
	}
	return d.Levels[at].Name
}

// settle makes rules drawn one by one fit each other: some combinations are wrong questions, and some have an answer
// that nothing defines.
func (d *drawing) settle() {
	g := &d.Gang
	of, main := d.Kinds()
	if g.Segment.Size > 0 {
		members := 0
		for _, kind := range of {
			if kind == main {
				members++
			}
		}
		g.Segment.Equal = g.Segment.Equal && members%g.Segment.Size == 0
		d.spreadOutside(d.Level(g.Segment.Level))
	}
	// Which kind is the most numerous may change with the number of members.
	if slices.Max(of) > 0 && (g.Segment.Size > 0 || g.Spares.Nodes > 0) {
		g.Min = 0
	}
	if g.Members[0].Placed {
		g.Members[0].Placed = false
		d.place()
	}
}

// spreadOutside moves the spread out of the segments' level. A segment in one accelerator domain may be in several of
// the network's, which the spread could not count.
func (d *drawing) spreadOutside(segment int) {
	spread := &d.Gang.Spread
	if spread.Max == 0 {
		return
	}
	at := d.Level(spread.Level)
	mixed := segment < len(d.Levels) && at < len(d.Levels) && d.Levels[at].Accelerator != d.Levels[segment].Accelerator
	if at > segment || mixed {
		spread.Level = d.Gang.Segment.Level
	}
}

// place makes the gang one that ran already and lost members: some survive, on nodes that they could have been put on,
// and some node may be lost with the others.
func (d *drawing) place() {
	for n := range d.Nodes { // whether spares that are void still need their label is undefined
		if d.Gang.Spares.Nodes > 0 && !d.Usable(n) {
			return
		}
	}
	x := newSearch(d.Scene, len(d.Gang.Members))
	for _, edges := range x.edge { // anywhere, not only where the best placement is
		for n := range edges {
			edges[n] = int64(d.choose(3))
		}
	}
	x.try(0, 0)
	if x.best == nil {
		return
	}
	last := len(x.best)
	if d.Gang.Min > 0 {
		last = d.Gang.Min // a survivor is never cut off
	}
	for i, n := range x.best[:last] {
		if d.choose(2) == 1 {
			continue
		}
		m := &d.Gang.Members[i]
		m.Placed, m.Node = true, n
		for r, demand := range d.Gang.Shapes[m.Shape].Demand {
			d.Free[n][r] -= demand
		}
	}
	lost := x.best[d.choose(len(x.best))]
	switch d.choose(3) {
	case 1:
		clear(d.Free[lost])
	case 2:
		d.bar(lost)
	}
}

// bar bars all members from the node.
func (d *drawing) bar(node int) {
	for i := range d.Gang.Shapes {
		shape := &d.Gang.Shapes[i]
		if shape.Barred == nil {
			shape.Barred = make([]string, len(d.Nodes))
		}
		shape.Barred[node] = "cordoned"
	}
}
