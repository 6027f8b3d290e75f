package baseline

import (
	"cmp"
	"container/heap"

	"github.com/lockstep-project/lockstep/topology"
)

// scored puts each pod, in rank order, on the node with the highest score beside those before it, as kube-scheduler
// would that has no other score. It knows no topology.
//
// A node's score is the mean of its resources' scores, 0 to 100, all in integers that are rounded down: cpu, memory and
// accelerators, with weight 1 each. Resources that the node has none of do not count, nor accelerators for a pod that
// asks for none (NodeResourcesFit, k8s.io/kubernetes 1.37, pkg/scheduler/framework/plugins/noderesources).
// kube-scheduler takes pods that ask for no cpu or memory for pods that ask for a little; that is not modeled. Of equal
// scores it takes any, this one the first.
type scored struct {
	score func(requested, capacity int64) int64
	fleet fleet
}

// leastAllocated is least_allocated.go's score: the part that stays free.
func leastAllocated(requested, capacity int64) int64 { return (capacity - requested) * 100 / capacity }

// mostAllocated is most_allocated.go's score: the part that is taken.
func mostAllocated(requested, capacity int64) int64 { return requested * 100 / capacity }

// The entries of capacities that score. Accelerators are the first extended resource.
const (
	firstScored   = 1
	firstExtended = 3
)

// Place implements Policy.
func (p *scored) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	s := scoring{draft: newDraft(l, gang), score: p.score, offers: make([]*offers, len(gang.Shapes))}
	s.changes = make(map[int]int)
	for rank, m := range gang.Members {
		if s.nodes[rank] != none {
			continue
		}
		if s.offers[m.Shape] == nil {
			s.open(m.Shape, p.fleet.of(l.Tree))
		}
		node := s.best(m.Shape)
		if node == none {
			return nil, false
		}
		s.put(rank, node)
		s.offer(node)
	}
	return s.nodes, true
}

// scoring is a gang whose placement is in progress. One pod changes one node, so the other nodes' scores are retained.
type scoring struct {
	*draft
	score func(requested, capacity int64) int64
	// offers are the nodes for each shape, the best first; nil for a shape that was not evaluated.
	offers []*offers
	// changes counts the changes of a node; older offers of it are void.
	changes map[int]int
}

// open makes the offers for a shape.
func (s *scoring) open(shape int, nodes []int) {
	all := &offers{made: make([]offer, 0, len(nodes))}
	for _, node := range nodes {
		if s.room(shape, node, 1) > 0 {
			all.made = append(all.made, s.offered(shape, node))
		}
	}
	heap.Init(all)
	s.offers[shape] = all
}

func (s *scoring) offered(shape, node int) offer {
	return offer{score: s.of(shape, node), node: node, change: s.changes[node]}
}

// offer makes the offers of a node that changed.
func (s *scoring) offer(node int) {
	s.changes[node]++
	for shape, all := range s.offers {
		if all != nil && s.room(shape, node, 1) > 0 {
			heap.Push(all, s.offered(shape, node))
		}
	}
}

// best takes the best offer that is not void.
func (s *scoring) best(shape int) int {
	for all := s.offers[shape]; all.Len() > 0; {
		o, _ := heap.Pop(all).(offer)
		if o.change == s.changes[o.node] {
			return o.node
		}
	}
	return none
}

// of is the node's score with one more pod of the shape, which it has room for. Where totals are not known, the node
// counts as empty.
func (s *scoring) of(shape, node int) int64 {
	demand, free, total := s.gang.Shapes[shape].Demand, s.free(node), s.ledger.Free[node]
	if s.ledger.Total != nil {
		total = s.ledger.Total[node]
	}
	var sum, count int64
	for r := firstScored; r < len(total); r++ {
		asked := int64(0)
		if r < len(demand) {
			asked = demand[r]
		}
		if total[r] <= 0 || r >= firstExtended && asked == 0 {
			continue
		}
		left := int64(0)
		if r < len(free) {
			left = free[r]
		}
		sum += s.score(min(total[r]-left+asked, total[r]), total[r])
		count++
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// offer is a node with its score.
type offer struct {
	score        int64
	node, change int
}

// offers is a heap: the highest score first, and of equal ones the first node.
type offers struct{ made []offer }

func (o *offers) Len() int { return len(o.made) }

func (o *offers) Less(i, j int) bool {
	a, b := o.made[i], o.made[j]
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.node, b.node)) < 0
}

func (o *offers) Swap(i, j int) { o.made[i], o.made[j] = o.made[j], o.made[i] }

// Push is heap.Interface's.
func (o *offers) Push(x any) {
	if one, ok := x.(offer); ok {
		o.made = append(o.made, one)
	}
}

// Pop is heap.Interface's.
func (o *offers) Pop() any {
	last := len(o.made) - 1
	one := o.made[last]
	o.made = o.made[:last]
	return one
}
