package openb

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// The names of the policies, as they are given to lockstep compare.
const (
	Random        = "random"
	DotProduct    = "dot-product"
	GPUClustering = "gpu-clustering"
	GPUPacking    = "gpu-packing"
	BestFit       = "best-fit"
	FGD           = "fgd"
)

// Policies are the names of all policies, in the order of the paper's figures.
func Policies() []string {
	return []string{Random, DotProduct, GPUClustering, GPUPacking, BestFit, FGD}
}

// Policy chooses the places of pods. The six of them are those that the paper compares, with the numbers of the plugins
// in `pkg/simulator/plugin` of hkust-adsl/kubernetes-scheduler-simulator, in whole points of 0 to 100 as kube-scheduler
// has them. Whole points tie often, and the rule for ties is worth several points of allocation.
type Policy interface {
	// Score rates a node for pods of a shape that fit there; the highest wins. It depends only on its arguments, so
	// scores are cached until their node changes. Nodes larger than the published fleet's may score below 0.
	Score(node *Node, shape *Shape) int
	// Share chooses, on the node that won, the index of the GPU for a pod of a shape that shares its GPU.
	Share(node *Node, shape *Shape) int
	// Tie is the choice between several nodes with the highest score.
	Tie() Tie
}

// Tie is a rule by which one of several nodes with the highest score is chosen.
type Tie string

const (
	// FirstNode takes the first node in an order that a seed has for its whole run, as the paper's simulator does.
	FirstNode Tie = "first node of a fixed per-seed order"
	// AnyNode takes any of them with equal chances.
	AnyNode Tie = "any node with equal chances"
)

// newPolicy makes the policy of a name. A name that no policy has is bad input.
func newPolicy(name string, f *fragments, chance *rand.Rand) (Policy, error) {
	switch name {
	case Random:
		return random{chance}, nil
	case DotProduct:
		return dotProduct{}, nil
	case GPUClustering:
		return gpuClustering{}, nil
	case GPUPacking:
		return gpuPacking{}, nil
	case BestFit:
		return bestFit{}, nil
	case FGD:
		return newFGD(f), nil
	}
	return nil, CheckPolicy(name)
}

// CheckPolicy refuses a name that no policy has, as bad input.
func CheckPolicy(name string) error {
	if slices.Contains(Policies(), name) {
		return nil
	}
	return &badinput.Error{
		What: "there is no policy " + name + " for pods that share GPUs",
		Mend: "choose from " + strings.Join(Policies(), ", "),
	}
}

// firstAndTightest is common to all policies but Random and FGD: pods share the fullest GPU that they fit on.
type firstAndTightest struct{}

func (firstAndTightest) Share(n *Node, s *Shape) int { return n.tightest(s.Milli) }

func (firstAndTightest) Tie() Tie { return FirstNode }
