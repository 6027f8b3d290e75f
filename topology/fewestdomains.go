package topology

import "slices"

// fewestDomains returns, for each level of the tree and for nodes, the fewest domains that the main kind needs there if
// nothing but their room counts. Domains in use already are taken first.
func (s *solver) fewestDomains() []int {
	groups := s.ledger.Tree.layout().groups
	fewest := make([]int, len(groups))
	for l, group := range groups {
		if s.table != nil {
			fewest[l] = s.table.fewestDomains(l)
			continue
		}
		fewest[l] = s.fewest(group)
	}
	return fewest
}

func (s *solver) fewest(group []int32) int {
	rooms := make([]int, s.lay.tree.layout().numbers)
	for _, node := range s.lay.nodes {
		rooms[group[node]] += int(max(s.room[0][node], 0))
	}
	needed, fewest := len(s.kinds[0].ranks), 0
	for node := range s.placedOn {
		if g := group[node]; rooms[g] >= 0 {
			needed -= rooms[g]
			fewest++
			rooms[g] = -1 // in use
		}
	}
	if largest := slices.Max(rooms); largest >= needed { // as most often: nothing to sort
		rooms = []int{largest}
	}
	slices.Sort(rooms)
	for _, room := range slices.Backward(rooms) {
		if needed <= 0 || room <= 0 {
			break
		}
		needed -= room
		fewest++
	}
	return max(fewest, 1)
}
