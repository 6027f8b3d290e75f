package snapshot

import (
	"maps"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/topology"
)

// patchable is the part of the fleet that may be added, deleted or move before a new tree is cheaper than changing the
// old one.
const patchable = 16

// patch follows nodes that were added, deleted or got other topology labels, and reports whether that was possible: a
// few of them, with no label family that the fleet did not have.
func (ix *Index) patch(infos []fwk.NodeInfo) bool {
	if !maps.Equal(ix.discovered, topology.Discovered(labeled(infos))) {
		return false // the cliques of others change with it
	}
	tree := ix.view.Tree
	known := make([]*slot, tree.Len())
	for i := range ix.slots {
		known[ix.slots[i].tree] = &ix.slots[i]
	}
	stays := make([]bool, tree.Len())
	var moved []topology.Node
	for _, info := range infos {
		node := info.Node()
		at, ok := tree.Index(node.Name)
		switch {
		case ok && ix.sameLevels(known[at].node.Labels, node.Labels):
			stays[at] = true
		case ix.foreign(node.Labels):
			return false
		default:
			moved = append(moved, ix.seen(node.Name, node.Labels))
		}
	}
	if (len(moved)+len(ix.slots)-count(stays))*patchable > len(infos) {
		return false
	}
	for at, s := range known {
		if s != nil && !stays[at] {
			tree, known[at] = tree.Without(s.node.Name), nil
		}
	}
	for _, node := range moved {
		tree = tree.With(node)
	}
	ix.adopt(tree, infos, known)
	return true
}

// foreign reports whether the labels are of a family that the fleet does not have: its levels would change.
func (ix *Index) foreign(labels map[string]string) bool {
	if ix.levels != nil {
		return false
	}
	has, node := ix.view.Tree.Levels(), ix.seen("", labels)
	return slices.ContainsFunc(topology.DetectLevels([]topology.Node{node}), func(l topology.Level) bool {
		return !slices.ContainsFunc(has, func(other topology.Level) bool { return other.Key == l.Key })
	})
}

func count(set []bool) int {
	n := 0
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}
