package topology

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// packing holds the places of the members of each kind inside one vertex. missing members found no place; lacking is
// the first kind that misses some.
type packing struct {
	spots   [][]pile
	missing int
	lacking int
}

// pile is members of one kind on one node.
type pile struct{ node, count int }

// packer answers for gangs of many kinds, for which no exact plan is made: kinds are packed one after another, each
// into the fewest children that hold it or into those in use, whichever costs less; every vertex that has room for each
// kind alone is tried, small ones first.
// 20 trainers of 8 GPUs and 20 readers of 30 CPUs: a block of 20 nodes has room for each kind alone; the trainers take
// all GPUs and leave 40 CPUs a node, so that each node holds a reader, too.
type packer struct {
	*ask
	lay  *layout
	free []Capacity
	// slots[kind][v] is the number of members of a kind alone that the vertex holds.
	slots [][]int
	// The rest changes while one vertex is packed: the remaining slots, the vertices that hold members already (using
	// them again costs no further domain), and the remaining capacity of nodes that hold some. Of left and touched only
	// what is below that vertex is set: there may be as many vertices to pack as there are nodes.
	left    [][]int
	touched []bool
	taken   map[int]Capacity
	piles   []pile
	// reuse is the first level at which a kind is not divided among domains in use if another one holds all of it.
	reuse int
}

// packed decides by packing. Members that join others which run are packed into the smallest domain around these that
// holds them; spares are there to be used then.
func (a *ask) packed() (plan, bool, error) {
	if a.rules.segment >= 0 || a.rules.spread >= 0 || a.rules.spares >= 0 && len(a.placedOn) == 0 {
		return plan{}, false, &InputError{
			Of: "gang " + a.gang.Name, What: "segments, spread or spares with many kinds of members",
			Hint: "make all kinds but one few (16 members together)", Cause: ErrCombination,
		}
	}
	p := newPacker(a)
	for _, v := range p.candidates() {
		if best, ok := p.best(v); ok {
			return best, true, nil
		}
	}
	return plan{}, false, nil
}

// best packs the vertex in several ways and returns the plan that costs least, the first of equal ones.
func (p *packer) best(v int) (plan, bool) {
	cheapest, least, weights := plan{}, int64(math.MaxInt64), p.weights()
	for _, reuse := range []int{0, len(p.lay.ladder), len(p.lay.ladder) + 1} {
		p.reuse = reuse
		done := p.pack(v)
		if done.missing > 0 {
			continue
		}
		for _, order := range []nodeOrder{p.byLeaf, p.byNearness} {
			next := plan{nodes: p.places(done, order), least: make([]int, len(p.lay.ladder)+1)}
			if _, cost := p.cost(next, weights); cost < least {
				cheapest, least = next, cost
			}
		}
	}
	if cheapest.nodes == nil {
		return plan{}, false
	}
	p.bound(&cheapest)
	return cheapest, true
}

func newPacker(a *ask) *packer {
	p := &packer{ask: a, lay: a.ledger.Tree.layout().holding(a.rules.required), free: a.ledger.Free}
	p.kinds = slices.Clone(a.kinds)
	if a.gang.PerNode > 0 {
		p.countMembers()
	}
	for _, k := range p.kinds {
		slots := make([]int, len(p.lay.vertices))
		for v, u := range slices.Backward(p.lay.vertices) {
			if node := u.first; u.level == len(p.lay.ladder) {
				if node = p.lay.nodes[node]; !k.barred(node) && !a.unlabelled(node) {
					slots[v] = k.room(p.free[node])
				}
			}
			if u.parent >= 0 {
				slots[u.parent] += slots[v]
			}
		}
		p.slots, p.left = append(p.slots, slots), append(p.left, make([]int, len(slots)))
	}
	p.touched = make([]bool, len(p.lay.vertices))
	return p
}

// countMembers makes the members themselves a resource, and every node has as much of it as it may hold members more.
func (p *packer) countMembers() {
	resources := 0
	for _, k := range p.kinds {
		resources = max(resources, len(k.shape.Demand))
	}
	for i, k := range p.kinds {
		demand := make(Capacity, resources+1)
		copy(demand, k.shape.Demand)
		demand[resources] = 1
		p.kinds[i].shape.Demand = demand
	}
	p.free = make([]Capacity, len(p.ledger.Free))
	for node, free := range p.ledger.Free {
		p.free[node] = make(Capacity, resources+1)
		copy(p.free[node], free)
		p.free[node][resources] = int64(max(p.gang.PerNode-p.placedOn[node], 0))
	}
}

// candidates returns the vertices that have room for each kind alone and hold all running members, further in first,
// then those with least room.
func (p *packer) candidates() []int {
	scarce := 0
	for k := range p.slots {
		if p.slots[k][0] < p.slots[scarce][0] {
			scarce = k
		}
	}
	var found []int
	required := p.lay.position(p.rules.required)
	running := slices.Collect(maps.Keys(p.placedOn))
	around := p.lay.around(running)
	for v, u := range p.lay.vertices {
		roomy := u.level >= required && (len(running) == 0 || v <= around && around < u.end)
		for k := range p.kinds {
			roomy = roomy && p.slots[k][v] >= len(p.kinds[k].ranks)
		}
		if roomy {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(u, v int) int {
		return cmp.Or(cmp.Compare(p.lay.vertices[v].level, p.lay.vertices[u].level),
			cmp.Compare(p.slots[scarce][u], p.slots[scarce][v]), cmp.Compare(u, v))
	})
	return found
}

// nodeOrder compares two nodes: the ranks of a kind take the smaller one first. The rank before them is on the node
// before, -1 if it has no place yet.
type nodeOrder func(before, x, y int) int

// byLeaf is the order of the tree.
func (p *packer) byLeaf(_, x, y int) int { return cmp.Compare(p.lay.leaves[x], p.lay.leaves[y]) }

// byNearness continues where the rank before is.
func (p *packer) byNearness(before, x, y int) int {
	if before < 0 {
		return p.byLeaf(before, x, y)
	}
	return cmp.Or(cmp.Compare(p.meeting(before, y), p.meeting(before, x)), p.byLeaf(before, x, y))
}

// places gives the places to the ranks of each kind, in an order of the nodes.
func (p *packer) places(done packing, order nodeOrder) []int {
	nodes := make([]int, len(p.gang.Members))
	for rank, m := range p.gang.Members {
		if nodes[rank] = -1; m.Placed {
			nodes[rank] = m.Node
		}
	}
	for i, piles := range done.spots {
		ranks := p.kinds[i].ranks
		if len(ranks) == 0 { // with segments, the most numerous kind may run already
			continue
		}
		before := nodes[(ranks[0]+len(nodes)-1)%len(nodes)]
		slices.SortFunc(piles, func(x, y pile) int { return order(before, x.node, y.node) })
		for _, s := range piles {
			for _, rank := range ranks[:s.count] {
				nodes[rank] = s.node
			}
			ranks = ranks[s.count:]
		}
	}
	return nodes
}

// meeting is the innermost vertex that holds both nodes; of two that hold a node, the inner one is the larger.
func (p *packer) meeting(a, b int) int {
	v, other := p.lay.leaves[a], p.lay.leaves[b]
	for other < v || other >= p.lay.vertices[v].end {
		v = p.lay.vertices[v].parent
	}
	return v
}

// bound completes a plan with the fewest domains of each level that any plan uses, and with the cost of these. It takes
// each level alone: the kind that needs most domains there.
func (p *packer) bound(answer *plan) {
	for i := range p.kinds {
		alone := *p.ask
		alone.kinds = p.kinds[i : i+1]
		alone.ledger.Free, alone.gang.PerNode = p.free, 0
		for l, fewest := range newSolver(&alone, p.ledger.Tree.layout().first(), p.weights(), alone.rules).fewestDomains() {
			answer.least[l] = max(answer.least[l], fewest)
		}
	}
	for l, w := range p.weights() {
		answer.bound += w * p.gang.Communication.fewest(answer.least[l], len(p.gang.Members))
	}
}

// pack puts as many members of the gang as fit on the nodes below the vertex. Kinds are packed one after another, the
// larger demand (fewer slots here) first, then, if that fails, in their order; the better packing is returned.
func (p *packer) pack(v int) packing {
	order := make([]int, len(p.kinds))
	for i := range order {
		order[i] = i
	}
	byDemand := slices.Clone(order)
	slices.SortStableFunc(byDemand, func(i, j int) int { return cmp.Compare(p.slots[i][v], p.slots[j][v]) })
	best := p.try(v, byDemand)
	if best.missing == 0 || slices.Equal(order, byDemand) {
		return best
	}
	if other := p.try(v, order); other.missing < best.missing {
		return other
	}
	return best
}

func (p *packer) try(root int, order []int) packing {
	end := p.lay.vertices[root].end
	for k, slots := range p.slots {
		copy(p.left[k][root:end], slots[root:end])
	}
	clear(p.touched[root:end])
	p.taken = make(map[int]Capacity)
	for node := range p.placedOn {
		p.touch(node)
	}
	done := packing{spots: make([][]pile, len(order))}
	for i, k := range order {
		wanted := len(p.kinds[k].ranks)
		placed := min(wanted, p.left[k][root])
		if placed < wanted && done.missing == 0 {
			done.lacking = k
		}
		done.missing += wanted - placed
		p.piles = nil
		p.spread(k, root, placed)
		done.spots[k] = p.piles
		p.take(k, order[i+1:])
	}
	return done
}

// spread puts count members of the kind, for which there is room, below the vertex: into the child that they fit best
// if one holds them all, else into the largest and the rest likewise. That uses the fewest children possible.
func (p *packer) spread(k, v, count int) {
	left, u := p.left[k], p.lay.vertices[v]
	if count == 0 {
		return
	}
	if u.level == len(p.lay.ladder) {
		p.piles = append(p.piles, pile{p.lay.nodes[u.first], count})
		return
	}
	var kids []int
	for c := v + 1; c < u.end; c = p.lay.vertices[c].end {
		if left[c] > 0 {
			kids = append(kids, c)
		}
	}
	slices.SortFunc(kids, func(x, y int) int { // those in use first, then the roomiest
		return cmp.Or(p.untouched(x)-p.untouched(y), left[y]-left[x], x-y)
	})
	kids = p.inUse(kids, left, count)
	for count > 0 {
		next := p.bestFit(left, kids, count)
		n := min(count, left[kids[next]])
		p.spread(k, kids[next], n)
		count -= n
		kids = slices.Delete(kids, next, next+1)
	}
}

// inUse leaves out the children that are not in use, if those of a level that is used again hold count members.
func (p *packer) inUse(kids, left []int, count int) []int {
	for i, c := range kids {
		if !p.touched[c] || p.lay.vertices[c].level >= p.reuse {
			break
		}
		if count -= left[c]; count <= 0 {
			return kids[:i+1]
		}
	}
	return kids
}

// bestFit returns which child holds count members and leaves the least, one in use before all others; the first if none
// holds them.
func (p *packer) bestFit(left, kids []int, count int) int {
	best := -1
	for i, c := range kids {
		if left[c] < count {
			continue
		}
		if best < 0 || cmp.Or(p.untouched(c)-p.untouched(kids[best]), left[c]-left[kids[best]], c-kids[best]) < 0 {
			best = i
		}
	}
	return max(best, 0)
}

// untouched is 0 for a vertex that already holds members of the gang, else 1.
func (p *packer) untouched(v int) int {
	if p.touched[v] {
		return 0
	}
	return 1
}

// touch notes that the gang uses a node, and the domains around it.
func (p *packer) touch(node int) {
	for v := p.lay.leaves[node]; v >= 0; v = p.lay.vertices[v].parent {
		p.touched[v] = true
	}
}

// take subtracts the capacity that the last spread used from the room of the kinds not packed yet.
func (p *packer) take(k int, later []int) {
	for _, s := range p.piles {
		left, ok := p.taken[s.node]
		if !ok {
			left = p.free[s.node]
		}
		left = left.less(p.kinds[k].shape.Demand, s.count)
		p.taken[s.node] = left
		leaf := p.lay.leaves[s.node]
		p.touch(s.node)
		for _, l := range later {
			gone := p.left[l][leaf] - min(p.left[l][leaf], p.kinds[l].room(left))
			for v := leaf; v >= 0; v = p.lay.vertices[v].parent {
				p.left[l][v] -= gone
			}
		}
	}
}
