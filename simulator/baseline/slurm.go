package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// slurm places as Slurm's topology/block plugin does (topology.html, topology.conf(5), sbatch(1); where these are silent, what
// eval_nodes_block.c of 26.05 does was taken for the rule).
//
//   - Blocks are the innermost accelerator domains (NVLink domains are what the plugin is for), or else the innermost domains. The planning
//     base block size is the number of nodes that every block has at least, as topology.conf(5) asks for. BlockSizes go on by doubling, to
//     the whole cluster: contiguous blocks in label-path order make pairs, pairs of pairs, and so on.
//   - A job stays inside one block of the smallest size that could hold it, and waits otherwise: of those with enough room, the one with
//     least.
//   - Inside it takes as few base blocks as it can: the largest first, and the one that holds the rest best at the end.
//   - Segments (--segment) are placed like that one after the other, each on its own; they need not be in one larger block. A size that does
//     not divide the job is refused, one that is larger than the job ignored. The level that the gang wants for its segments is not
//     looked at, nor are required and preferred levels: Slurm's users cannot name one.
//   - Nodes, and tasks on them, are in label-path order (block distribution).
//
// Room is counted in members and not in nodes, which is the same where members take whole nodes; the size of the job is what it takes of
// nodes that are as large as the largest of the cluster. Nodes outside all blocks are a topology of their own, flat, which is tried
// after the blocks. A gang of several shapes is placed as a heterogeneous job: a component after the other.
//
// Not modeled: --exclusive=topo, --consolidate-segments, --spread-segments, node weights, --switches.
type slurm struct {
	tree *topology.Tree
	// blocks are the nodes of each base block; flat are those outside.
	blocks [][]int
	flat   []int
	// base is the planning base block size, in nodes.
	base int
}

// Place implements Policy.
func (p *slurm) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	p.read(l.Tree)
	d := newDraft(l, gang)
	for shape, ranks := range d.waiting() {
		if len(ranks) > 0 && !p.component(d, shape, ranks) {
			return nil, false
		}
	}
	return d.nodes, true
}

// read makes the blocks of a tree, once.
func (p *slurm) read(tree *topology.Tree) {
	if p.tree == tree {
		return
	}
	*p = slurm{tree: tree}
	level := baseLevel(tree)
	of := make(map[string]int)
	var nodes fleet
	for _, node := range nodes.of(tree) {
		domain, inside := tree.Domain(node, level)
		if level < 0 || !inside {
			p.flat = append(p.flat, node)
			continue
		}
		name := domain.String()
		if _, known := of[name]; !known {
			of[name] = len(p.blocks)
			p.blocks = append(p.blocks, nil)
		}
		p.blocks[of[name]] = append(p.blocks[of[name]], node)
	}
	p.base = math.MaxInt
	for _, block := range p.blocks {
		p.base = min(p.base, len(block))
	}
}

// baseLevel is the innermost accelerator level, or else the innermost level; -1 if there is none.
func baseLevel(tree *topology.Tree) int {
	levels := tree.Levels()
	for i, level := range slices.Backward(levels) {
		if level.Accelerator {
			return i
		}
	}
	return len(levels) - 1
}

// component places the ranks of a shape: in blocks, or else outside.
func (p *slurm) component(d *draft, shape int, ranks []int) bool {
	size := d.gang.Segment.Size
	if size <= 0 || size > len(ranks) {
		size = len(ranks)
	}
	if len(ranks)%size != 0 {
		return false
	}
	room := p.room(d, shape, p.blocks)
	nodes := make([]int, 0, len(ranks))
	per := d.largest(shape)
	for len(nodes) < len(ranks) {
		taken := room.segment(size, p.reach(size, per))
		if taken == nil {
			return p.outside(d, shape, ranks)
		}
		nodes = append(nodes, taken...)
	}
	slices.Sort(nodes)
	for i, rank := range ranks {
		d.put(rank, nodes[i])
	}
	return true
}

// largest is how many members of the shape the largest node would take if it were idle; 1 at least.
func (d *draft) largest(shape int) int {
	idle, most := d.ledger.Total, 1
	if idle == nil {
		idle = d.ledger.Free
	}
	for _, total := range idle {
		most = max(most, times(total, d.gang.Shapes[shape].Demand, math.MaxInt32))
	}
	return most
}

// reach is how many contiguous base blocks a job of so many members may use, if a node takes per of them: the smallest power of two whose
// planned nodes hold it.
func (p *slurm) reach(members, per int) int {
	nodes := (members + per - 1) / per
	reach := 1
	for reach < len(p.blocks) && reach*p.base < nodes {
		reach *= 2
	}
	return reach
}

// outside places all ranks on the nodes that are in no block, in their order.
func (p *slurm) outside(d *draft, shape int, ranks []int) bool {
	taken := p.room(d, shape, [][]int{p.flat}).segment(len(ranks), 1)
	for i, node := range taken {
		d.put(ranks[i], node)
	}
	return taken != nil
}

// blockRoom is how many members each base block, and each node of it, has room for.
type blockRoom struct {
	blocks [][]nodeRoom
	sums   []int
}

type nodeRoom struct{ node, room int }

func (p *slurm) room(d *draft, shape int, blocks [][]int) *blockRoom {
	r := &blockRoom{blocks: make([][]nodeRoom, len(blocks)), sums: make([]int, len(blocks))}
	for b, nodes := range blocks {
		for _, node := range nodes {
			if room := d.room(shape, node, math.MaxInt32); room > 0 {
				r.blocks[b] = append(r.blocks[b], nodeRoom{node, room})
				r.sums[b] += room
			}
		}
	}
	return r
}

// segment takes room for so many inside one block of reach base blocks, and returns the nodes; nil if no such block has enough.
func (r *blockRoom) segment(members, reach int) []int {
	best, least := nobody, 0
	for first := 0; first < len(r.sums); first += reach {
		sum := 0
		for _, room := range r.sums[first:min(first+reach, len(r.sums))] {
			sum += room
		}
		// Of equal ones the plugin takes the last that it looks at.
		if sum >= members && (best == nobody || sum <= least) {
			best, least = first, sum
		}
	}
	if best == nobody {
		return nil
	}
	nodes := make([]int, 0, members)
	for len(nodes) < members {
		nodes = r.take(nodes, r.next(best, min(best+reach, len(r.sums)), members-len(nodes)), members)
	}
	return nodes
}

// next is the base block to take next: the smallest that holds the rest, or else the largest; the last of equal ones.
func (r *blockRoom) next(first, end, rest int) int {
	best := first
	for b := first + 1; b < end; b++ {
		fits, bestFits := r.sums[b] >= rest, r.sums[best] >= rest
		smaller := cmp.Compare(r.sums[b], r.sums[best])
		if fits && (!bestFits || smaller <= 0) || !fits && !bestFits && smaller >= 0 {
			best = b
		}
	}
	return best
}

// take fills nodes of a base block, in their order, until there are so many.
func (r *blockRoom) take(nodes []int, block, members int) []int {
	for i := range r.blocks[block] {
		n := &r.blocks[block][i]
		for ; n.room > 0 && len(nodes) < members; n.room-- {
			nodes = append(nodes, n.node)
			r.sums[block]--
		}
	}
	return nodes
}
