package topology

import "slices"

// ask is a question in the form that decisions need: the members still to be placed, and the constraints that running
// members put on them.
type ask struct {
	ledger Ledger
	gang   Gang
	rules  rules
	// kinds are those of the members to be placed, with the ranks of these members only. The first is the most numerous
	// kind; of a gang with segments that of the whole gang, which may have no rank left. The others follow by first
	// rank.
	kinds []kind
	// placedOn counts the gang's running members by node.
	placedOn map[int]int
	segments segments
	// labels are the levels that rules are about: nodes without these labels take no member.
	labels []int
}

// segments groups the ranks of the main kind.
type segments struct {
	size int
	// full and short are the ranks of segments without running members; short is the last one if it is smaller.
	full  [][]int
	short []int
	// broken are segments with some running members and some that do not run.
	broken []broken
	// running is a node of each segment with a running member.
	running []int
}

// broken is a segment that lost members: they must be placed where the others are.
type broken struct {
	near int
	lost []int
}

func newAsk(l Ledger, g Gang, r rules) *ask {
	a := &ask{ledger: l, gang: g, rules: r}
	for _, level := range []int{r.required, r.segment, r.spread, r.spares} {
		if level >= 0 && level < len(l.Tree.levels) {
			a.labels = append(a.labels, level)
		}
	}
	if r.running {
		a.placedOn = g.placedOn()
	}
	all := l.Tree.kinds(g)
	main := mostNumerous(all)
	if g.Segment.Size > 0 {
		a.segments = group(g, all[main].ranks)
	}
	if len(a.placedOn) > 0 {
		for i := range all {
			all[i].ranks = filter(all[i].ranks, func(rank int) bool { return !g.Members[rank].Placed })
		}
		if g.Segment.Size == 0 { // beside running members, too, one kind may be large: that of those that wait
			main = mostNumerous(all)
		}
	}
	a.kinds = append(make([]kind, 0, len(all)), all[main])
	for i, k := range all {
		if i != main && len(k.ranks) > 0 {
			a.kinds = append(a.kinds, k)
		}
	}
	return a
}

// placedOn counts the running members by node; nil for none.
func (g Gang) placedOn() map[int]int {
	var on map[int]int
	for _, m := range g.Members {
		if m.Placed {
			if on == nil {
				on = make(map[int]int)
			}
			on[m.Node]++
		}
	}
	return on
}

func filter(ranks []int, keep func(int) bool) []int {
	kept := make([]int, 0, len(ranks))
	for _, r := range ranks {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// group sorts the main kind's ranks into segments.
func group(g Gang, ranks []int) segments {
	s := segments{size: g.Segment.Size}
	for segment := range slices.Chunk(ranks, s.size) {
		var lost []int
		near := -1
		for _, rank := range segment {
			if m := g.Members[rank]; !m.Placed {
				lost = append(lost, rank)
			} else if near < 0 {
				near = m.Node
			}
		}
		switch {
		case near < 0 && len(segment) < s.size:
			s.short = segment
		case near < 0:
			s.full = append(s.full, segment)
		default:
			s.running = append(s.running, near)
			if len(lost) > 0 {
				s.broken = append(s.broken, broken{near, lost})
			}
		}
	}
	return s
}

// waiting is the number of members to be placed.
func (a *ask) waiting() int {
	n := 0
	for _, k := range a.kinds {
		n += len(k.ranks)
	}
	return n
}

// small returns the number of members of each kind except the main one.
func (a *ask) small() []int {
	limits := make([]int, 0, len(a.kinds)-1)
	for _, k := range a.kinds[1:] {
		limits = append(limits, len(k.ranks))
	}
	return limits
}

// The bounds of exact planning: the members of all kinds except the most numerous, and the layers for them.
const (
	mostSmall  = 16
	mostLayers = 2 * 3 * 17
)

// exact reports whether the kinds are few enough to be planned exactly.
func (a *ask) exact() bool {
	total, layers := 0, 1
	for _, n := range a.small() {
		total += n
		layers = min(layers*(n+1), mostLayers+1)
	}
	return total <= mostSmall && layers <= mostLayers
}

// unlabelled reports whether the node lacks a label that one of the rules needs.
func (a *ask) unlabelled(node int) bool {
	if len(a.labels) == 0 {
		return false
	}
	path := a.ledger.Tree.roster.entry(node).path
	return slices.ContainsFunc(a.labels, func(level int) bool { return path[level] == "" })
}
