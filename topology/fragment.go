package topology

import "github.com/lockstep-project/lockstep/topology/grid"

// Share is a part of a mix of gangs: those of so many members, at this weight among the shares.
type Share struct {
	Members int
	Weight  int64
	// Segment is the size of the segments in which gangs larger than a domain are placed, 0 if these cannot be cut.
	Segment int
}

// Fragment is the part of the free room at one level without use to a mix of gangs that want to be inside one domain of
// the level each: the rest of each domain when it is filled with gangs of one size, averaged over the mix.
type Fragment struct {
	// Level is the level of the tree; the last fragment is that of single nodes.
	Level Level
	// Stranded of Free places are of no use, both times the sum of the shares' weights.
	Stranded, Free int64
}

// Fraction is the part of the free places that is stranded, 0 if none is free.
func (f Fragment) Fraction() float64 {
	if f.Free == 0 {
		return 0
	}
	return float64(f.Stranded) / float64(f.Free)
}

// Fragmentation measures how broken up the free room of a ledger is for members of a shape, per level of the tree,
// outermost first, and then for nodes. A gang with more members than an empty domain could hold is placed there in
// segments; without Total that limit is the most that any domain of the level holds now. A node that lacks a level's
// label counts as described at Use.
//
// Shares without members or weight are ignored, and so are nodes beyond the end of the given slices. Members that take
// nothing have no places.
func Fragmentation(l Ledger, s Shape, mix []Share) []Fragment {
	if l.Tree == nil {
		return nil
	}
	free, total := l.places(l.Free, s), l.places(l.Total, s)
	levels := append(l.Tree.Levels(), Level{Name: LevelNode, Key: labelHostname})
	fragments := make([]Fragment, len(levels))
	for at, group := range l.Tree.layout().groups {
		f := &fragments[at]
		f.Level = levels[at]
		holds, caps := l.sums(group, free), l.sums(group, total)
		largest, sum := int64(0), int64(0)
		for _, n := range holds {
			largest = max(largest, n)
			sum += n
		}
		for _, share := range mix {
			if share.Members <= 0 || share.Weight <= 0 {
				continue
			}
			f.Free += share.Weight * sum
			for d, n := range holds {
				most := largest
				if l.Total != nil {
					most = max(caps[d], n)
				}
				f.Stranded += share.Weight * share.stranded(n, most)
			}
		}
	}
	return fragments
}

// stranded returns the rest of n free places in a domain that never has more than most.
func (s Share) stranded(n, most int64) int64 {
	size := int64(s.Members)
	if size > most && s.Segment > 0 {
		size = int64(s.Segment)
	}
	return n % size
}

// places returns the number of members of the shape that each node holds.
func (l Ledger) places(free []Capacity, s Shape) []int64 {
	k := kind{shape: s}
	places := make([]int64, l.Len())
	for _, node := range l.Tree.layout().first().nodes {
		if node < len(free) && (node >= len(s.Barred) || s.Barred[node] == "") {
			places[node] = int64(k.room(free[node]))
		}
	}
	return places
}

// sums adds up the places of the nodes of each group.
func (l Ledger) sums(group []int32, places []int64) []int64 {
	sums := make([]int64, l.Tree.layout().numbers)
	for _, node := range l.Tree.layout().first().nodes {
		sums[group[node]] += places[node]
	}
	return sums
}

// Largest returns the greatest number of members with which a gang like this one could be placed now: a fresh gang of
// members like those of its most numerous kind, under its rules; its own number of members does not matter. With
// segments only whole ones count. Members that take nothing have no limit but those of the rules; at most 2^31-1 are
// counted on a node. For a gang that asks for a box, all nodes of a torus count.
func Largest(l Ledger, g Gang) (int, error) {
	r, err := check(l, g)
	if err != nil {
		return 0, err
	}
	k := mainKind(g)
	if k.free() {
		l.Free, k.shape.Demand = abundance(l)
	}
	size := g.Segment.Size
	g.Members, g.Shapes, g.Min, g.Box = []Member{{}}, []Shape{k.shape}, 0, grid.Size{}
	a := newAsk(l, g, r)
	a.segments = segments{size: size}
	ls := l.Tree.layout()
	lay, err := a.home(ls)
	if err != nil {
		return 0, err
	}
	if lay == nil {
		lay = ls.holding(r.required)
	}
	largest := 0
	for part := range a.parts(ls, lay) {
		s := newSolver(part, lay, a.weights(), part.rules)
		for v, u := range lay.vertices {
			if u.level == s.required {
				largest = max(largest, s.largest(v))
			}
		}
	}
	return largest, nil
}

// abundance lets members that take nothing take one of something that every node has plenty of.
func abundance(l Ledger) ([]Capacity, Capacity) {
	free := make([]Capacity, l.Len())
	for i := range free {
		free[i] = Capacity{unlimited}
	}
	return free, Capacity{1}
}

// largest returns the most members of a gang of one kind, in whole segments, that the vertex holds.
func (s *solver) largest(v int) int {
	size := max(s.segments.size, 1)
	n := int(s.units[v])
	if s.inSegments(v) {
		n *= size
	}
	for w := s.lay.vertices[v].parent; w >= 0; w = s.lay.vertices[w].parent {
		level := s.lay.vertices[w].level
		if level == s.spread {
			n = min(n, s.gang.Spread.Max*size)
		}
		if level == s.spares && s.fit != nil {
			n = min(n, int(s.fit[w])-s.gang.Spares.Nodes)
		}
	}
	return max(n, 0) / size * size
}
