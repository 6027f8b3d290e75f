package openb

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Each kind of random draw has a stream of its own, so that it does not depend on the number of other draws.
const (
	streamArrivals = iota + 1
	streamNodes
	streamPolicy
)

// mostArrivals is a bound beyond which a list was hardly meant; the published lists have about 11,000.
const mostArrivals = 10_000_000

// Scene combines a list of nodes and a list of pods by one seed. It is not changed by Run, and several may run at once.
type Scene struct {
	seed   uint64
	models models
	nodes  []trace.OpenbNode
	// pods are the list, by name; of is which of the shapes each has.
	pods   []trace.OpenbPod
	shapes []Shape
	of     []int
	// arrivals are the indices of the arriving pods, in their order; copies have the index of their original.
	arrivals []int
	// popular is for FGD, which expects the pods of the future to be like those of the list.
	popular []popular
	// capacity is that of all GPUs together.
	capacity int64
}

// NewScene makes a scene by the paper's protocol. Pods are sorted by name and shuffled. Then the list is tuned to 1.3
// times the GPUs of the cluster: pods are removed at random while they ask for more, and copies of pods of the list are
// appended until the next one would exceed it. Nodes are put into an order of the seed's, by which ties are broken
// (FirstNode). Lists without GPUs are bad input, and so are pods if more than ten million would have to arrive.
//
// Source: the scripts and `pkg/simulator` of hkust-adsl/kubernetes-scheduler-simulator, the paper's.
func NewScene(nodes []trace.OpenbNode, pods []trace.OpenbPod, seed uint64) (Scene, error) {
	s := Scene{seed: seed, models: modelsOf(nodes), nodes: slices.Clone(nodes)}
	for i := range nodes {
		s.capacity += int64(nodes[i].GPUs) * trace.GPU
	}
	if s.capacity == 0 {
		return Scene{}, &badinput.Error{
			What: "the nodes of the fleet have no GPU",
			Mend: "name a list of nodes with GPUs",
		}
	}
	if !slices.ContainsFunc(pods, func(p trace.OpenbPod) bool { return p.GPUs > 0 }) {
		return Scene{}, &badinput.Error{
			What: "the pods of the trace ask for no GPU",
			Mend: "name a list of pods with GPUs",
		}
	}
	byName := func(a, b trace.OpenbNode) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortStableFunc(s.nodes, byName)
	order := s.chance(streamNodes)
	order.Shuffle(len(s.nodes), func(i, j int) { s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i] })

	s.pods = slices.SortedStableFunc(
		slices.Values(pods), func(a, b trace.OpenbPod) int { return cmp.Compare(a.Name, b.Name) })
	s.popular = popularOf(s.pods)
	s.shapes, s.of = shapesOf(s.pods, s.models)
	if n := s.expected(); n > mostArrivals {
		return Scene{}, &badinput.Error{
			What: fmt.Sprintf("the pods of the trace ask for so little that about %d of them would have to come", n),
			Mend: "name fewer nodes, or pods that ask for more GPUs",
		}
	}
	s.arrivals = s.tune()
	return s, nil
}

// Arrivals returns the number of arriving pods.
func (s Scene) Arrivals() int {
	return len(s.arrivals)
}

func (s Scene) chance(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, stream))
}

// expected is the approximate number of arriving pods: as many as request the target together if each requests the
// mean.
func (s Scene) expected() int64 {
	var total int64
	for pod := range s.pods {
		total += s.shape(pod).asks()
	}
	return int64(float64(s.target()) / float64(total) * float64(len(s.pods)))
}

// target returns the most that the arriving pods request together.
func (s Scene) target() int64 {
	return s.capacity * 13 / 10
}

// tune makes the arrivals of the list of pods.
func (s Scene) tune() []int {
	chance := s.chance(streamArrivals)
	arrivals := chance.Perm(len(s.pods))
	target := s.target()
	var total int64
	for _, pod := range arrivals {
		total += s.shape(pod).asks()
	}
	for total > target {
		i := chance.IntN(len(arrivals))
		total -= s.shape(arrivals[i]).asks()
		arrivals = slices.Delete(arrivals, i, i+1)
	}
	for {
		pod := chance.IntN(len(s.pods))
		total += s.shape(pod).asks()
		if total > target {
			return arrivals
		}
		arrivals = append(arrivals, pod)
	}
}

// shape is that of a pod of the list.
func (s Scene) shape(pod int) *Shape {
	return &s.shapes[s.of[pod]]
}
