package conformance

import (
	"fmt"
	"math/rand/v2"
)

// Golden is the file.
type Golden struct {
	// Kueue is the release that answered.
	Kueue string `json:"kueue"`
	// Seed determines the questions.
	Seed  uint64 `json:"seed"`
	Trees []Tree `json:"trees"`
}

// Tree is a topology with the free resources of its nodes, and the questions about it.
type Tree struct {
	// Levels are the label keys above the node, outermost first.
	Levels []string `json:"levels,omitempty"`
	Nodes  []Node   `json:"nodes"`
	Asks   []Ask    `json:"asks"`
}

// Node is a leaf: the values of the levels, and its free capacity.
type Node struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"`
	// Free are pods, milli-CPU, bytes of memory, accelerators.
	Free [4]int64 `json:"free"`
	// Barred is set if the pods do not tolerate the node's taint.
	Barred bool `json:"barred,omitempty"`
}

// Ask is a podset, and Kueue's answer.
type Ask struct {
	// Required and Preferred are label keys; if both are empty, the podset is unconstrained.
	Required  string `json:"required,omitempty"`
	Preferred string `json:"preferred,omitempty"`
	// Slice is the size of its slices, each in one domain of Home; 0 for none.
	Slice int    `json:"slice,omitempty"`
	Home  string `json:"home,omitempty"`
	Pods  int    `json:"pods"`
	// Takes are the resources of a pod: milli-CPU, bytes of memory, accelerators.
	Takes [3]int64 `json:"takes"`
	// Hosts are the nodes in rank order, each followed by the number of its pods; empty if there is no room.
	Hosts []Share `json:"hosts,omitempty"`
}

// Share is the number of pods of an assignment on a node.
type Share struct {
	Node string `json:"node"`
	Pods int    `json:"pods"`
}

const (
	gib      = int64(1) << 30
	hostname = "kubernetes.io/hostname"
)

// Draw makes so many trees with questions, without answers: about a third of them small, a third of any size, and a
// third tight, for they ask for about as much as there is.
func Draw(seed uint64, count int) Golden {
	g := Golden{Seed: seed}
	for i := range count {
		g.Trees = append(g.Trees, draw(rand.New(rand.NewPCG(seed, uint64(i)))))
	}
	return g
}

// draw makes a tree of one to three levels above its nodes.
func draw(r *rand.Rand) Tree {
	var t Tree
	for l := range 1 + r.IntN(3) {
		t.Levels = append(t.Levels, [...]string{"test/zone", "test/block", "test/rack"}[l])
	}
	most := 1 + r.Int64N(8)
	grow(r, &t, nil, most)
	for range 3 {
		t.Asks = append(t.Asks, ask(r, &t))
	}
	return t
}

// grow adds the nodes of a domain. Names have numbers of one and two digits, so that their order is not that of people.
func grow(r *rand.Rand, t *Tree, path []string, most int64) {
	if len(path) == len(t.Levels) {
		for range 1 + r.IntN(6) {
			name := fmt.Sprintf("n%d", len(t.Nodes))
			node := Node{Name: name, Values: append([]string{}, path...), Barred: r.IntN(12) == 0}
			free := r.Int64N(most + 1)
			pods, cpu, memory := free+r.Int64N(4), 2000*free+1000*r.Int64N(3), 16*gib*(free+r.Int64N(2))
			node.Free = [4]int64{pods, cpu, memory, free}
			if r.IntN(4) == 0 {
				node.Free[r.IntN(4)] = 0
			}
			t.Nodes = append(t.Nodes, node)
		}
		return
	}
	first := r.IntN(10)
	for i := range 1 + r.IntN(4) {
		// Values may repeat below different parents: the path identifies a domain.
		grow(r, t, append(path, fmt.Sprintf("d%d", first+i)), most)
	}
}

func ask(r *rand.Rand, t *Tree) Ask {
	level := func() string {
		if at := r.IntN(len(t.Levels) + 1); at < len(t.Levels) {
			return t.Levels[at]
		}
		return hostname
	}
	a := Ask{Takes: [3]int64{1000 * (1 + r.Int64N(3)), 8 * gib * (1 + r.Int64N(2)), 1 + r.Int64N(2)}}
	switch r.IntN(3) {
	case 0:
		a.Pods = 1 + r.IntN(12)
	case 1:
		a.Pods = 1 + r.IntN(64)
	default:
		a.Pods = tight(r, t, a.Takes[2])
	}
	switch r.IntN(3) {
	case 0:
		a.Required = level()
	case 1:
		a.Preferred = level()
	}
	if r.IntN(3) == 0 {
		a.Slice, a.Home = 1+r.IntN(6), level()
		a.Pods = max(1, min(64, a.Pods)/a.Slice) * a.Slice
	}
	return a
}

// tight is about as many pods as some of the nodes have room for, 1 to 64.
func tight(r *rand.Rand, t *Tree, gpus int64) int {
	room := int64(0)
	for range 1 + r.IntN(len(t.Nodes)) {
		room += t.Nodes[r.IntN(len(t.Nodes))].Free[3] / gpus
	}
	return int(min(64, max(1, room)))
}
