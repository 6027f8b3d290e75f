package topology

import (
	"cmp"
	"slices"
)

// branch is the root (level -1), a domain (its level) or a node (level len(levels)) of a tree that never changes. A
// level whose label is missing has no branch: the parent of a branch is the innermost domain around it.
type branch struct {
	level int
	// value is the label's; of a node, its name.
	value string
	// node is the number of a node, -1 for a domain.
	node int
	kids []*branch
}

// comparePaths is label-path order.
func comparePaths(a, b entry) int {
	return cmp.Or(slices.CompareFunc(a.path, b.path, compareValues), CompareNatural(a.name, b.name))
}

// compareBranches is the order of siblings: those with the label of the outermost level first.
func compareBranches(a, b *branch) int {
	return cmp.Or(cmp.Compare(a.level, b.level), CompareNatural(a.value, b.value))
}

// grow makes the tree of entries that are in label-path order; numbers are those of their nodes, nil if they are in
// order too.
func grow(entries []entry, numbers []int, levels int) *branch {
	stack := []*branch{{level: -1, node: -1}}
	var previous []string
	for i, e := range entries {
		shared := 0
		for shared < len(previous) && previous[shared] == e.path[shared] {
			shared++
		}
		for stack[len(stack)-1].level >= shared {
			stack = stack[:len(stack)-1]
		}
		for l := shared; l < levels; l++ {
			if e.path[l] != "" {
				stack = append(stack, stack[len(stack)-1].adopt(&branch{level: l, value: e.path[l], node: -1}))
			}
		}
		number := i
		if numbers != nil {
			number = numbers[i]
		}
		stack[len(stack)-1].adopt(&branch{level: levels, value: e.name, node: number})
		previous = e.path
	}
	return stack[0]
}

// adopt is for branches that are not shared yet.
func (b *branch) adopt(kid *branch) *branch {
	b.kids = append(b.kids, kid)
	return kid
}

// with returns the branch with one more node below.
func (b *branch) with(e entry, node int) *branch {
	kid := &branch{level: len(e.path), value: e.name, node: node}
	if l := e.next(b.level); l < len(e.path) {
		kid = &branch{level: l, value: e.path[l], node: -1}
	}
	at, found := slices.BinarySearchFunc(b.kids, kid, compareBranches)
	copied := *b
	if found {
		copied.kids = slices.Clone(b.kids)
		kid = b.kids[at]
	} else {
		copied.kids = slices.Insert(slices.Clip(b.kids), at, kid)
	}
	if kid.node < 0 {
		kid = kid.with(e, node)
	}
	copied.kids[at] = kid
	return &copied
}

// without returns the branch without the node of the entry, which is below it; domains that become empty are removed.
func (b *branch) without(e entry) *branch {
	kid := &branch{level: len(e.path), value: e.name}
	if l := e.next(b.level); l < len(e.path) {
		kid = &branch{level: l, value: e.path[l]}
	}
	at, _ := slices.BinarySearchFunc(b.kids, kid, compareBranches)
	copied := *b
	copied.kids = slices.Clone(b.kids)
	if kid = b.kids[at]; kid.node < 0 {
		kid = kid.without(e)
	}
	if kid.node >= 0 || len(kid.kids) == 0 {
		copied.kids = slices.Delete(copied.kids, at, at+1)
	} else {
		copied.kids[at] = kid
	}
	return &copied
}
