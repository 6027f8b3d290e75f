package openb

import (
	"math/rand/v2"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// The largest node of the published fleet, by which amounts are normalized.
const (
	largestCPU = 128_000
	largestGPU = 8 * trace.GPU
	// cpuOfGPU is the amount of CPU that weighs as much as one thousandth of a GPU.
	cpuOfGPU = largestCPU / largestGPU
)

// random takes any node that has room, and any GPU there, with equal chances.
type random struct{ chance *rand.Rand }

func (random) Score(*Node, *Shape) int { return 0 }

func (random) Tie() Tie { return AnyNode }

func (r random) Share(n *Node, s *Shape) int {
	var fits []int
	for i, left := range n.GPUs {
		if left >= s.Milli {
			fits = append(fits, i)
		}
	}
	return fits[r.chance.IntN(len(fits))]
}

// dotProduct prefers nodes whose free CPU and GPUs point away from the pod's request: 100·(1 − ½·free·asked), where
// both have CPU and GPUs as parts of the largest node's. It is the alignment of Tetris (Grandl et al., SIGCOMM '14),
// with the opposite sign. Source: dot_product_score.go.
type dotProduct struct{ firstAndTightest }

func (dotProduct) Score(n *Node, s *Shape) int {
	const whole = 2 * largestCPU * largestCPU
	product := n.CPU*s.CPU + cpuOfGPU*cpuOfGPU*n.Free*s.asks()
	return int(100 * (whole - product) / whole)
}

// bestFit prefers nodes with the least left: 100·(1 − ½·Σ left), with CPU and GPUs as parts of the largest node's. The
// paper's simulator stretches the scores of all nodes to 0 to 100 afterwards, which changes neither which is the
// highest nor which are as high. Source: best_fit_score.go.
type bestFit struct{ firstAndTightest }

func (bestFit) Score(n *Node, s *Shape) int {
	const whole = 2 * largestCPU
	left := n.CPU - s.CPU + cpuOfGPU*(n.Free-s.asks())
	return int(100 * (whole - left) / whole)
}

// gpuPacking prefers, in this order, GPUs that are shared already, GPUs of nodes in use, and nodes whose GPUs are all
// free. Source: gpu_packing_score.go.
type gpuPacking struct{ firstAndTightest }

func (gpuPacking) Score(n *Node, s *Shape) int {
	switch {
	case s.GPUs == 0:
		return 0
	case n.Idle == len(n.GPUs):
		return max(100/3-n.Idle, n.Idle)
	case !s.Shared():
		return max(100/2-s.GPUs, 100/3)
	}
	left := n.GPUs[n.tightest(s.Milli)]
	if left == trace.GPU {
		return 100/2 - 1
	}
	return max(100-int(10*left/trace.GPU), 100/2)
}

// gpuClustering places pods together that share GPUs, or have equally many, and fills nodes. Source:
// gpu_clustering_score.go.
type gpuClustering struct{ firstAndTightest }

func (gpuClustering) Score(n *Node, s *Shape) int {
	if s.GPUs == 0 {
		return 0
	}
	used := int(100 / 4 * (largestGPU - n.Free) / largestGPU)
	switch class := s.class(); {
	case n.classes == class:
		return used + 75
	case n.classes&class != 0:
		return used + 50
	case n.classes == 0:
		return used + 25
	}
	return used
}
