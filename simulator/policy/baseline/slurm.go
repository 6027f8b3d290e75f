package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// slurm places as Slurm's topology/block plugin does (topology.html, topology.conf(5), sbatch(1); where these are
// silent, the behavior of eval_nodes_block.c in SchedMD/slurm at 0032c98 is the rule).
//
//   - Blocks are the innermost accelerator domains (the plugin is for NVLink domains), or else the innermost domains,
//     of a level that has any with several nodes. The planning base block size is the number of nodes that every block
//     has at least, as topology.conf(5) asks for. BlockSizes double, up to the whole cluster: contiguous blocks in
//     label-path order make pairs, pairs of pairs, and so on.
//   - A job stays inside one block of the smallest size that could hold it, and waits otherwise: of those with enough room, the
//     one with least.
//   - Inside it takes as few base blocks as it can: the largest first, and the one that holds the rest best at the end.
//   - Segments (--segment) are placed like that one after the other, each on its own; they need not be in one larger
//     block. A size that does not divide the job is refused, one that is larger than the job ignored. The level that
//     the gang wants for its segments is ignored, as are required and preferred levels: Slurm's users cannot name one.
//   - Nodes, and tasks on them, are in label-path order (block distribution).
//
// Room is counted in members and not in nodes, which is the same where members take whole nodes; the size of the job is
// its number of nodes if all are as large as the largest of the cluster. Nodes outside all blocks are a topology of
// their own, flat, which is tried after the blocks: there a job takes as few runs of consecutive nodes as it can, best
// fit. A gang of several shapes is placed as a heterogeneous job: a component after the other.
//
// Not modeled: --exclusive=topo, --consolidate-segments, --spread-segments, node weights, --switches.
type slurm struct {
	tree *topology.Tree
	// blocks are the nodes of each base block; flat are those outside.
	blocks [][]int
	flat   []int
	// base is the planning base block size, in nodes.
	base int
	idle most
	// sets are those of Sets, by reach.
	sets map[int][][]int
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
	*p = slurm{tree: tree, sets: make(map[int][][]int)}
	var f fleet
	nodes, levels := f.of(tree), tree.Levels()
	p.flat = nodes
	for _, accelerators := range []bool{true, false} {
		for at, level := range slices.Backward(levels) {
			if len(p.blocks) == 0 && level.Accelerator == accelerators {
				p.divide(nodes, at)
			}
		}
	}
	p.base = math.MaxInt
	for _, block := range p.blocks {
		p.base = min(p.base, len(block))
	}
}

// divide makes blocks of the level's domains, in the order of nodes, if one of them has several nodes.
func (p *slurm) divide(nodes []int, level int) {
	var blocks [][]int
	var flat []int
	of, several := make(map[string]int), false
	for _, node := range nodes {
		domain, inside := p.tree.Domain(node, level)
		if !inside {
			flat = append(flat, node)
			continue
		}
		name := domain.String()
		at, known := of[name]
		if !known {
			at = len(blocks)
			of[name], blocks = at, append(blocks, nil)
		}
		blocks[at] = append(blocks[at], node)
		several = several || known
	}
	if several {
		p.blocks, p.flat = blocks, flat
	}
}

// component places the ranks of a shape: in blocks, or else outside.
func (p *slurm) component(d *draft, shape int, ranks []int) bool {
	size := inOneBlock(&d.gang, len(ranks))
	if len(ranks)%size != 0 {
		return false
	}
	counts := d.counts(shape)
	room := roomOf(counts, p.blocks)
	nodes := make([]int, 0, len(ranks))
	per := p.idle.of(d.ledger, d.gang.Shapes[shape].Demand)
	for len(nodes) < len(ranks) {
		taken := room.segment(size, p.reach(size, per))
		if taken == nil {
			return p.outside(d, counts, ranks)
		}
		nodes = append(nodes, taken...)
	}
	slices.Sort(nodes)
	for i, rank := range ranks {
		d.put(rank, nodes[i])
	}
	return true
}

// inOneBlock returns how many of so many members stay inside one block: a segment, or all if the gang has none or a
// larger one.
func inOneBlock(gang *topology.Gang, members int) int {
	if size := gang.Segment.Size; size > 0 && size <= members {
		return size
	}
	return members
}

// reach returns the number of contiguous base blocks that a job of so many members may use, if a node takes per of
// them: the smallest power of two whose planned nodes hold it.
func (p *slurm) reach(members, per int) int {
	nodes := (members + per - 1) / per
	reach := 1
	for reach < len(p.blocks) && reach*p.base < nodes {
		reach *= 2
	}
	return reach
}

// Sets returns sets of nodes and a number of members: wherever Place places the gang, one of the sets holds that many
// at least. They are the blocks of the size that could hold the job, and the nodes outside all blocks; nil for a gang
// of several shapes, or with members that are placed already.
func (p *slurm) Sets(l topology.Ledger, gang topology.Gang) (sets [][]int, members int) {
	if len(gang.Shapes) != 1 || slices.ContainsFunc(gang.Members, func(m topology.Member) bool { return m.Placed }) {
		return nil, 0
	}
	p.read(l.Tree)
	size := inOneBlock(&gang, len(gang.Members))
	reach := p.reach(size, p.idle.of(l, gang.Shapes[0].Demand))
	if p.sets[reach] == nil {
		all := [][]int{p.flat}
		for blocks := range slices.Chunk(p.blocks, reach) {
			all = append(all, slices.Concat(blocks...))
		}
		p.sets[reach] = all
	}
	return p.sets[reach], size
}

// outside places all ranks on the nodes that are in no block, in as few runs of nodes with room as it can.
func (p *slurm) outside(d *draft, counts, ranks []int) bool {
	var runs [][]int
	last := none
	for at, node := range p.flat {
		if counts[node] == 0 {
			continue
		}
		if last == none || at > last+1 {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], node)
		last = at
	}
	nodes := roomOf(counts, runs).segment(len(ranks), max(1, len(runs)))
	slices.Sort(nodes)
	for i, node := range nodes {
		d.put(ranks[i], node)
	}
	return nodes != nil
}

// blockRoom holds the number of members that each node of base blocks has room for, beside those that were given nodes.
type blockRoom struct {
	counts []int
	blocks [][]int
	sums   []int
}

// roomOf counts the room of blocks. It owns the counts of nodes.
func roomOf(counts []int, blocks [][]int) *blockRoom {
	r := &blockRoom{counts: counts, blocks: blocks, sums: make([]int, len(blocks))}
	for b, nodes := range blocks {
		for _, node := range nodes {
			r.sums[b] += counts[node]
		}
	}
	return r
}

// segment takes room for so many inside one block of reach base blocks, and returns the nodes; nil if no such block has
// enough.
func (r *blockRoom) segment(members, reach int) []int {
	best, least := none, 0
	for first := 0; first < len(r.sums); first += reach {
		sum := 0
		for _, room := range r.sums[first:min(first+reach, len(r.sums))] {
			sum += room
		}
		// Of equal ones the plugin takes the last.
		if sum >= members && (best == none || sum <= least) {
			best, least = first, sum
		}
	}
	if best == none {
		return nil
	}
	nodes := make([]int, 0, members)
	for len(nodes) < members {
		rest := members - len(nodes)
		nodes = append(nodes, r.take(r.next(best, min(best+reach, len(r.sums)), rest), rest)...)
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

// take fills nodes of a base block, in their order, until there are so many or it is full.
func (r *blockRoom) take(block, most int) []int {
	var nodes []int
	for _, node := range r.blocks[block] {
		room := min(r.counts[node], most-len(nodes))
		for range room {
			nodes = append(nodes, node)
		}
		r.counts[node] -= room
		r.sums[block] -= room
	}
	return nodes
}
