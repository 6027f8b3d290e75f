package openb

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// fgd, Fragmentation Gradient Descent, prefers nodes whose fragmentation grows least by the pod, or shrinks most:
// 100·sigmoid(−growth in GPUs). A pod that shares a GPU takes the one by which it grows least, the first of several.
// Source: fgd_score.go.
type fgd struct {
	fragments *fragments
	// least[k-1] is the least shrinking, in the unit of fragments, that scores k points, for k of 1 to 99.
	least []int64
}

func newFGD(f *fragments) fgd {
	p := fgd{fragments: f}
	for k := 1; k < 100; k++ {
		gpus := math.Log(float64(k) / float64(100-k))
		p.least = append(p.least, int64(math.Ceil(gpus*trace.GPU*float64(f.pods))))
	}
	return p
}

func (fgd) Tie() Tie { return FirstNode }

func (p fgd) Score(n *Node, s *Shape) int {
	if s.Shared() {
		score, _ := p.share(n, s)
		return score
	}
	var room [trace.MostGPUs]int64
	gpus := append(room[:0], n.GPUs...)
	for i, taken := 0, 0; taken < s.GPUs; i++ {
		if gpus[i] == trace.GPU {
			gpus[i] = 0
			taken++
		}
	}
	return p.points(n, s, gpus)
}

func (p fgd) Share(n *Node, s *Shape) int {
	_, gpu := p.share(n, s)
	return gpu
}

// share is the best score that a GPU of the node gives a pod that shares it, and the first GPU with it.
func (p fgd) share(n *Node, s *Shape) (best, gpu int) {
	var room [trace.MostGPUs]int64
	gpus := append(room[:0], n.GPUs...)
	best, gpu = -1, -1
	for i, left := range n.GPUs {
		if left < s.Milli || slices.Contains(n.GPUs[:i], left) {
			continue // the first GPU with as much left scores the same
		}
		gpus[i] = left - s.Milli
		if score := p.points(n, s, gpus); score > best {
			best, gpu = score, i
		}
		gpus[i] = left
	}
	return best, gpu
}

// points is the score of a node whose GPUs would be as given with a pod.
func (p fgd) points(n *Node, s *Shape, gpus []int64) int {
	shrinks := n.fragmented - p.fragments.of(n.model, n.CPU-s.CPU, gpus)
	above, _ := slices.BinarySearch(p.least, shrinks+1)
	return above
}
