package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// kueue places as Kueue 0.19's topology-aware scheduling does with its default gates (KEP 2724). It is made after how
// Kueue behaves, and held to answers of Kueue's own code: see the module in conformance.
//
//   - A required level is podset-required-topology, else a preferred one podset-preferred-topology; a gang that asks for
//     neither is unconstrained, as in a flavor with a topology it is by implication. Segments are
//     podset-slice-required-topology and podset-slice-size.
//   - Required and preferred use BestFit: of the domains that hold all, the one with least room; a preferred level
//     climbs until one does, and at the outermost takes the largest domains first, and the last where it fits best. The
//     levels below are treated alike.
//   - The others use LeastFreeCapacity: one domain of the innermost level (of the outermost, for segments) with least room, or
//     the fullest domains first, wherever they are.
//   - Ranks are in the order of label values, which the topology ungater follows.
//
// Kueue sees nodes that have all labels of a topology. Nodes are grouped by the levels that they have, each group with
// a topology and a ResourceFlavor of its own; a gang is placed in the first that has its levels and room, those with
// most levels first.
//
// Not modeled: TASBalancedPlacement (off by default), leaders in podset groups (each shape is a podset of its own, and
// so may be in another domain), slices of several layers, preferred node affinity, quotas, replacing nodes that failed.
// A gang that segments do not divide evenly is refused: Kueue would leave its last pods gated.
type kueue struct {
	tree    *topology.Tree
	flavors []flavor
}

// Place implements Policy.
func (p *kueue) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	if p.tree != l.Tree {
		p.tree, p.flavors = l.Tree, flavors(l.Tree)
	}
	d := newDraft(l, gang)
	for shape, ranks := range d.waiting() {
		if len(ranks) > 0 && !p.podset(d, shape, ranks) {
			return nil, false
		}
	}
	return d.nodes, true
}

// podset places the ranks of a shape in the first flavor that takes them.
func (p *kueue) podset(d *draft, shape int, ranks []int) bool {
	for i := range p.flavors {
		f := &p.flavors[i]
		w, ok := f.wish(d.ledger.Tree, &d.gang, len(ranks))
		if !ok {
			continue
		}
		f.count(w, func(node int) int { return d.room(shape, node, math.MaxInt32) })
		leaves, ok := f.place(w)
		if !ok {
			continue
		}
		next := 0
		for _, leaf := range leaves {
			for range f.domains[leaf].pods {
				d.put(ranks[next], f.domains[leaf].node)
				next++
			}
		}
		return true
	}
	return false
}

// wish is the request of a podset. Levels are positions in the flavor.
type wish struct {
	pods  int
	level int
	// slice is the size of a slice, 1 for none; home is the level with one domain that holds it.
	slice, home int
	// required does not climb. loose is unconstrained: fill the fullest first.
	required, loose bool
}

// wish reads the gang's request; false if this flavor cannot satisfy it.
func (f *flavor) wish(tree *topology.Tree, gang *topology.Gang, pods int) (wish, bool) {
	inner := len(f.levels) - 1
	w := wish{pods: pods, level: inner, slice: 1, home: inner}
	known := true
	if gang.Segment.Size > 0 {
		w.slice, w.level = gang.Segment.Size, 0
		w.home, known = f.position(tree, gang.Segment.Level)
	}
	switch {
	case !known:
		return wish{}, false
	case gang.Required != "":
		w.required = true
		w.level, known = f.position(tree, gang.Required)
	case gang.Preferred != "":
		w.level, known = f.position(tree, gang.Preferred)
	default:
		w.loose = true
	}
	return w, known && w.level <= w.home
}

// count sets the number of pods and slices for which each domain has room. Above the slices' level slices are summed
// up; below it domains count as having none.
func (f *flavor) count(w wish, room func(node int) int) {
	for i := range f.domains {
		f.domains[i].pods, f.domains[i].slices = 0, 0
	}
	for level, domains := range slices.Backward(f.byLevel) {
		for _, i := range domains {
			d := &f.domains[i]
			if d.node != none {
				d.pods = room(d.node)
			}
			if level == w.home {
				d.slices = d.pods / w.slice
			}
			if d.parent != none {
				f.domains[d.parent].pods += d.pods
				f.domains[d.parent].slices += d.slices
			}
		}
	}
}

// place returns the leaves that the podset uses, in rank order; their pods are the number of pods on each.
func (f *flavor) place(w wish) ([]int, bool) {
	level, chosen := f.choose(w)
	if chosen == nil {
		return nil, false
	}
	// Down to the slices' level the pods are dealt out anew among all children, regardless of their parent.
	chosen = f.deal(w, chosen, w.pods/w.slice, slicesOf)
	for ; level < w.home; level++ {
		var kids []int
		for _, i := range chosen {
			kids = append(kids, f.domains[i].kids...)
		}
		chosen = f.deal(w, f.sorted(w, kids), w.pods/w.slice, slicesOf)
	}
	// Below it each domain gives its own pods to its own children.
	for ; level < len(f.byLevel)-1; level++ {
		var next []int
		for _, i := range chosen {
			next = append(next, f.deal(w, f.sorted(w, f.domains[i].kids), f.domains[i].pods, podsOf)...)
		}
		chosen = next
	}
	slices.SortFunc(chosen, func(a, b int) int { return cmp.Compare(f.domains[a].order, f.domains[b].order) })
	placed := 0 // not all, if slices do not divide the podset
	for _, i := range chosen {
		placed += f.domains[i].pods
	}
	return chosen, placed == w.pods
}

// choose returns the domains to begin with, and their level: those of the wish's level, or of one further out.
func (f *flavor) choose(w wish) (int, []int) {
	need := w.pods / w.slice
	for level := w.level; ; level-- {
		sorted := f.sorted(w, f.byLevel[level])
		if one := f.holding(w, sorted, need); one != none {
			return level, []int{one}
		}
		switch {
		case w.required:
			return level, nil
		case w.loose, level == 0:
			return level, f.several(w, sorted, need)
		}
	}
}

// holding returns the domain that is to hold all slices; -1 if there is none.
func (f *flavor) holding(w wish, sorted []int, need int) int {
	if w.loose {
		if at := slices.IndexFunc(sorted, func(i int) bool { return f.domains[i].slices >= need }); at >= 0 {
			return sorted[at]
		}
		return none
	}
	return f.fitting(sorted, need, slicesOf)
}

// several takes domains in their order until they hold all slices; nil if they do not.
func (f *flavor) several(w wish, sorted []int, need int) []int {
	var taken []int
	rest := need
	for at, i := range sorted {
		if !w.loose && f.domains[i].slices >= rest {
			i = f.fitting(sorted[at:], rest, slicesOf)
		}
		taken = append(taken, i)
		if rest -= f.domains[i].slices; rest <= 0 {
			return taken
		}
	}
	return nil
}

// unit is the kind that is dealt out: pods or slices.
type unit int

const (
	slicesOf unit = iota
	podsOf
)

func (d *domain) has(u unit) int {
	if u == slicesOf {
		return d.slices
	}
	return d.pods
}

// deal gives units to domains in their order, and returns those that it gave to. From now on their pods are those that
// they hold.
func (f *flavor) deal(w wish, sorted []int, units int, u unit) []int {
	rest := units
	for at, i := range sorted {
		if !w.loose && f.domains[i].has(u) >= rest {
			i = f.fitting(sorted[at:], rest, u)
			sorted[at] = i
		}
		d := &f.domains[i]
		given := min(d.has(u), rest)
		if d.pods = given; u == slicesOf {
			d.slices, d.pods = given, given*w.slice
		}
		if rest -= given; rest <= 0 {
			return sorted[:at+1]
		}
	}
	return nil
}

// fitting returns the first of the domains with least room that hold so many; -1 if none does.
func (f *flavor) fitting(among []int, units int, u unit) int {
	best := none
	for _, i := range among {
		has := f.domains[i].has(u)
		if has >= units && (best == none || has < f.domains[best].has(u)) {
			best = i
		}
	}
	return best
}

// sorted orders domains: those with most slices first, or with fewest if the wish is loose, then those with fewest
// pods, then by label values.
func (f *flavor) sorted(w wish, among []int) []int {
	out := slices.Clone(among)
	sign := -1
	if w.loose {
		sign = 1
	}
	slices.SortFunc(out, func(a, b int) int {
		x, y := &f.domains[a], &f.domains[b]
		return cmp.Or(sign*cmp.Compare(x.slices, y.slices), cmp.Compare(x.pods, y.pods), cmp.Compare(x.order, y.order))
	})
	return out
}
