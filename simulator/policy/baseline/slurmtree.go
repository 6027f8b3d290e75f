package baseline

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// slurmTree places as Slurm's topology/tree plugin does (topology.html, sbatch(1)).
//
//   - Switches are the domains of the network levels, leaf switches those of the innermost that has any with several nodes; the whole
//     cluster is the switch above all. Accelerator domains are switches only where there is no network level: the plugin describes a
//     network.
//   - A job is placed under the lowest switch that has room for all of it, of equally low ones under the one with least room. Under it the
//     leaf switches are filled best fit: the smallest that holds the rest, or else the largest.
//   - That is a preference: a job that finds no such switch uses the whole cluster. A required level that is a leaf
//     switch's, or inside one, is requested as --switches=1, and such a job waits for one leaf switch. Slurm lets a job
//     wait for its switches no longer than max_switch_wait, 300 s by default; sites on which jobs need one switch raise
//     it.
//   - Nodes, and tasks on them, are in label-path order (block distribution).
//
// Not modeled: required levels above leaf switches and segments, for which users of this plugin have no words; node
// weights, and a wait for switches that ends.
type slurmTree struct {
	tree *topology.Tree
	// switches are the nodes of the switches of each level, by index of that level; the last are leaf switches. The
	// first are the whole cluster.
	switches [][][]int
	// leaf is the level of leaf switches in the tree, -1 if there is none.
	leaf int
	// at is the order of nodes by label path, by number.
	at []int
}

// Place implements Policy.
func (p *slurmTree) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	p.read(l.Tree)
	d := newDraft(l, gang)
	for shape, ranks := range d.waiting() {
		if len(ranks) > 0 && !p.component(d, shape, ranks) {
			return nil, false
		}
	}
	return d.nodes, true
}

// read makes the switches of a tree, once.
func (p *slurmTree) read(tree *topology.Tree) {
	if p.tree == tree {
		return
	}
	*p = slurmTree{tree: tree, leaf: none, at: make([]int, tree.Len())}
	var f fleet
	nodes, levels := f.of(tree), tree.Levels()
	for order, node := range nodes {
		p.at[node] = order
	}
	p.switches = [][][]int{{nodes}}
	network := slices.ContainsFunc(levels, func(l topology.Level) bool { return !l.Accelerator })
	for at, level := range levels {
		if level.Accelerator && network {
			continue
		}
		if all, several := p.domains(nodes, at); several {
			p.switches, p.leaf = append(p.switches, all), at
		}
	}
}

// domains returns the nodes of the level's domains, in the order of nodes, and whether one has several.
func (p *slurmTree) domains(nodes []int, level int) (all [][]int, several bool) {
	of := make(map[string]int)
	for _, node := range nodes {
		domain, inside := p.tree.Domain(node, level)
		if !inside {
			continue // it is under the whole cluster only
		}
		name := domain.String()
		at, known := of[name]
		if !known {
			at = len(all)
			of[name], all = at, append(all, nil)
		}
		all[at] = append(all[at], node)
		several = several || known
	}
	return all, several
}

// component places the ranks of a shape.
func (p *slurmTree) component(d *draft, shape int, ranks []int) bool {
	lowest := 0
	if p.oneSwitch(d.gang.Required) {
		lowest = len(p.switches) - 1
	}
	counts := d.counts(shape)
	for level := len(p.switches) - 1; level >= lowest; level-- {
		room := roomOf(counts, p.switches[level])
		best := none
		for i, sum := range room.sums {
			if sum >= len(ranks) && (best == none || sum < room.sums[best]) {
				best = i
			}
		}
		if best != none {
			p.fill(d, counts, ranks, p.switches[level][best])
			return true
		}
	}
	return false
}

// oneSwitch reports whether a job that requires a level asks for one leaf switch: domains of the level are inside one.
func (p *slurmTree) oneSwitch(required string) bool {
	level, known := p.tree.Level(required)
	return required != "" && known && p.leaf != none && level >= p.leaf
}

// fill places ranks under a switch that has room for all.
func (p *slurmTree) fill(d *draft, counts, ranks, under []int) {
	room := roomOf(counts, p.leavesOf(under))
	var nodes []int
	for len(nodes) < len(ranks) {
		rest := len(ranks) - len(nodes)
		nodes = append(nodes, room.take(bestLeaf(room.sums, rest), rest)...)
	}
	slices.SortFunc(nodes, func(a, b int) int { return cmp.Compare(p.at[a], p.at[b]) })
	for i, rank := range ranks {
		d.put(rank, nodes[i])
	}
}

// leavesOf returns the nodes of the leaf switches under a switch; those under no leaf switch are one of their own.
func (p *slurmTree) leavesOf(under []int) [][]int {
	rest := make(map[int]bool, len(under))
	for _, node := range under {
		rest[node] = true
	}
	var leaves [][]int
	for _, leaf := range p.switches[len(p.switches)-1] {
		if rest[leaf[0]] {
			leaves = append(leaves, leaf)
			for _, node := range leaf {
				delete(rest, node)
			}
		}
	}
	if len(rest) > 0 {
		leaves = append(leaves, slices.DeleteFunc(slices.Clone(under), func(node int) bool { return !rest[node] }))
	}
	return leaves
}

// bestLeaf returns the smallest leaf switch that holds the rest, or else the largest; the first of equal ones.
func bestLeaf(sums []int, rest int) int {
	best := 0
	for i, sum := range sums {
		fits, bestFits := sum >= rest, sums[best] >= rest
		if fits && (!bestFits || sum < sums[best]) || !fits && !bestFits && sum > sums[best] {
			best = i
		}
	}
	return best
}

// slurmFlat places as Slurm does without a topology (topology/flat): nodes are a line in label-path order, and a job
// takes as few runs of consecutive nodes with room as it can, best fit. Its users can ask for no domain.
type slurmFlat struct {
	tree *topology.Tree
	all  slurm
}

// Place implements Policy.
func (p *slurmFlat) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	if p.tree != l.Tree {
		var f fleet
		p.tree, p.all = l.Tree, slurm{tree: l.Tree, flat: f.of(l.Tree)}
	}
	d := newDraft(l, gang)
	for shape, ranks := range d.waiting() {
		if len(ranks) > 0 && !p.all.outside(d, d.counts(shape), ranks) {
			return nil, false
		}
	}
	return d.nodes, true
}
