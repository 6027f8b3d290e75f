package topology

import "slices"

// countCaps fills caps, if units do not say it all: for every layer, and where segments have lost members that must come
// back. Costs do not matter here, so the most is enough, and no front is needed to tell whether members fit.
func (s *solver) countCaps() {
	if s.many.Count() == 1 && len(s.segments.broken) == 0 {
		return
	}
	s.caps = make([][]int32, len(s.lay.vertices))
	for v, u := range slices.Backward(s.lay.vertices) {
		if u.level == len(s.lay.ladder) {
			s.caps[v] = s.leafCaps(s.lay.nodes[u.first])
		} else if s.caps[v] == nil {
			s.caps[v] = s.noCaps(u.level)
		}
		s.limitCaps(v, s.limit)
		if u.level == s.segment {
			s.caps[v] = s.segmentCaps(v)
			s.limitCaps(v, s.limitSegments)
		}
		if u.parent >= 0 {
			s.addCaps(u.parent, s.caps[v])
		}
	}
}

func (s *solver) leafCaps(node int) []int32 {
	caps := make([]int32, len(s.room))
	for e := range caps {
		caps[e] = min(s.room[e][node], int32(len(s.kinds[0].ranks)))
	}
	return caps
}

// noCaps are those of a vertex without children: no member at all, which is one of the layers.
func (s *solver) noCaps(level int) []int32 {
	layers := s.few.Count()
	if level < s.segment {
		layers = s.many.Count()
	}
	caps := make([]int32, layers)
	for e := range caps[1:] {
		caps[e+1] = -1
	}
	return caps
}

// addCaps adds what one more child holds.
func (s *solver) addCaps(v int, more []int32) {
	level := s.lay.vertices[v].level
	if s.caps[v] == nil {
		s.caps[v] = s.noCaps(level)
	}
	layers := s.few
	if level < s.segment {
		layers = s.many
	}
	sums := make([]int32, len(s.caps[v]))
	for e := range sums {
		sums[e] = -1
		layers.Splits(e, func(x, y int) {
			if x < len(more) && more[x] >= 0 && s.caps[v][y] >= 0 {
				sums[e] = max(sums[e], min(more[x]+s.caps[v][y], most/2))
			}
		})
	}
	s.caps[v] = sums
}

func (s *solver) limitCaps(v int, limit func(v, layer int) int) {
	for e, n := range s.caps[v] {
		allowed := limit(v, e)
		if e == 0 {
			allowed = max(allowed, 0)
		}
		s.caps[v][e] = max(min(n, int32(allowed)), -1)
	}
}

// segmentCaps turns members into segments.
func (s *solver) segmentCaps(v int) []int32 {
	caps := make([]int32, s.many.Count())
	for layer := range caps {
		owed := s.count(s.owed, v)
		if layer >= s.few.Count() {
			owed += len(s.segments.short)
		}
		if n := int(s.caps[v][layer%s.few.Count()]) - owed; n >= 0 {
			caps[layer] = int32(n / s.segments.size)
		} else {
			caps[layer] = -1
		}
	}
	return caps
}

// holds returns how many units the vertex holds beside the small members of a layer, -1 if these do not fit.
func (s *solver) holds(v, layer int) int {
	switch {
	case s.caps == nil:
		return int(s.units[v])
	case layer < len(s.caps[v]):
		return int(s.caps[v][layer])
	}
	return -1
}
