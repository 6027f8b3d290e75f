package topology

import "slices"

// countLayerCapacity fills layerCapacity, if units do not suffice: for every layer, and where segments have lost
// members that must return. Costs do not matter here, so the most is enough, and no front is needed to decide whether
// members fit. Two nodes of 8 GPUs and 100 CPUs, workers of 1 GPU and 12 CPUs, a launcher of 20 CPUs: a node holds 8
// workers, or 6 beside the launcher, and both together 16, or 14.
func (s *solver) countLayerCapacity() {
	if s.many.Count() == 1 && len(s.segments.broken) == 0 {
		return
	}
	s.layerCapacity = make([][]int32, len(s.lay.vertices))
	for v, u := range slices.Backward(s.lay.vertices) {
		if u.level == len(s.lay.ladder) {
			s.layerCapacity[v] = s.leafCapacity(s.lay.nodes[u.first])
		} else if s.layerCapacity[v] == nil {
			s.layerCapacity[v] = s.emptyCapacity(u.level)
		}
		s.limitCapacity(v, s.limit)
		if u.level == s.segment {
			s.layerCapacity[v] = s.segmentCapacity(v)
			s.limitCapacity(v, s.limitSegments)
		}
		if u.parent >= 0 {
			s.addCapacity(u.parent, s.layerCapacity[v])
		}
	}
}

func (s *solver) leafCapacity(node int) []int32 {
	caps := make([]int32, len(s.room))
	for e := range caps {
		caps[e] = min(s.room[e][node], int32(len(s.kinds[0].ranks)))
	}
	return caps
}

// emptyCapacity are those of a vertex without children: no member at all, which is one of the layers.
func (s *solver) emptyCapacity(level int) []int32 {
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

// addCapacity adds the capacity of one more child.
func (s *solver) addCapacity(v int, more []int32) {
	level := s.lay.vertices[v].level
	if s.layerCapacity[v] == nil {
		s.layerCapacity[v] = s.emptyCapacity(level)
	}
	layers := s.few
	if level < s.segment {
		layers = s.many
	}
	sums := make([]int32, len(s.layerCapacity[v]))
	for e := range sums {
		sums[e] = -1
		layers.Splits(e, func(x, y int) {
			if x < len(more) && more[x] >= 0 && s.layerCapacity[v][y] >= 0 {
				sums[e] = max(sums[e], min(more[x]+s.layerCapacity[v][y], unlimited/2))
			}
		})
	}
	s.layerCapacity[v] = sums
}

func (s *solver) limitCapacity(v int, limit func(v, layer int) int) {
	for e, n := range s.layerCapacity[v] {
		least := -1
		if e == 0 {
			least = 0
		}
		s.layerCapacity[v][e] = max(min(n, int32(max(limit(v, e), least))), -1)
	}
}

// segmentCapacity turns members into segments.
func (s *solver) segmentCapacity(v int) []int32 {
	caps := make([]int32, s.many.Count())
	for layer := range caps {
		owed := s.count(s.owed, v)
		if layer >= s.few.Count() {
			owed += len(s.segments.short)
		}
		if n := int(s.layerCapacity[v][layer%s.few.Count()]) - owed; n >= 0 {
			caps[layer] = int32(n / s.segments.size)
		} else {
			caps[layer] = -1
		}
	}
	return caps
}

// holds returns the number of units that the vertex holds beside the small members of a layer, -1 if these do not fit.
func (s *solver) holds(v, layer int) int {
	switch {
	case s.layerCapacity == nil:
		return int(s.units[v])
	case layer < len(s.layerCapacity[v]):
		return int(s.layerCapacity[v][layer])
	}
	return -1
}
