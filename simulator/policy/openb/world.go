package openb

import (
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Node is a machine and its free capacity.
type Node struct {
	CPU, Memory int64
	// GPUs is the free part of each, 0 to 1,000.
	GPUs []int64
	// Free is the free part of all GPUs together, Idle the number that are wholly free.
	Free int64
	Idle int
	// classes are those of the pods with GPUs that are here.
	classes uint64
	model   int
	// fragmented is the node's fragmentation, see fragments.
	fragmented int64
}

// Fits reports whether a pod of the shape has room. It needs GPUs that each have as much free as it asks for.
func (n *Node) Fits(s *Shape) bool {
	if n.CPU < s.CPU || n.Memory < s.Memory || s.accepts != nil && !s.accepts[n.model] {
		return false
	}
	if s.Shared() {
		return slices.ContainsFunc(n.GPUs, func(left int64) bool { return left >= s.Milli })
	}
	return n.Idle >= s.GPUs
}

// tightest is the GPU with the least free of those that a shared pod fits on, the first of several.
func (n *Node) tightest(milli int64) int {
	best := -1
	for i, left := range n.GPUs {
		if left >= milli && (best < 0 || left < n.GPUs[best]) {
			best = i
		}
	}
	return best
}

// wholly are the first GPUs that are wholly free.
func (n *Node) wholly(count int) []int {
	gpus := make([]int, 0, count)
	for i, left := range n.GPUs {
		if len(gpus) < count && left == trace.GPU {
			gpus = append(gpus, i)
		}
	}
	return gpus
}

// world are the nodes of a scene while it is played, and sums over them.
type world struct {
	nodes     []Node
	fragments *fragments
	// allocated and fragmented are of all GPUs together, the latter in the unit of fragments.
	allocated, fragmented int64
}

func newWorld(scene *Scene) *world {
	w := &world{fragments: newFragments(scene.popular, scene.models)}
	for i := range scene.nodes {
		from := &scene.nodes[i]
		n := Node{
			CPU: from.CPU, Memory: from.Memory, GPUs: slices.Repeat([]int64{trace.GPU}, from.GPUs),
			Free: int64(from.GPUs) * trace.GPU, Idle: from.GPUs, model: scene.models.index(from.Model),
		}
		n.fragmented = w.fragments.of(n.model, n.CPU, n.GPUs)
		w.fragmented += n.fragmented
		w.nodes = append(w.nodes, n)
	}
	return w
}

// place puts a pod on a node that it fits on, on the GPUs that are given.
func (w *world) place(node int, s *Shape, gpus []int) {
	n := &w.nodes[node]
	n.CPU -= s.CPU
	n.Memory -= s.Memory
	for _, gpu := range gpus {
		if n.GPUs[gpu] == trace.GPU {
			n.Idle--
		}
		n.GPUs[gpu] -= s.Milli
		n.classes |= s.class()
	}
	n.Free -= s.asks()
	w.allocated += s.asks()
	w.fragmented -= n.fragmented
	n.fragmented = w.fragments.of(n.model, n.CPU, n.GPUs)
	w.fragmented += n.fragmented
}
