package measure

import (
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// mostJudged is the rough number of starts of gangs of several members that are compared with the best that was
// possible: that costs a decision each. Of more, every k-th is.
const mostJudged = 2000

// quality judges placements.
type quality struct {
	domains *domains
	// most is the largest amount of each resource on a node.
	most topology.Capacity
	// first is the first job that counts; of those starts, one in every is judged.
	first, every, seen int
	q, gaps            []float64
	byWork             weighted
	split, inversions  int
	bounded            int
}

func newQuality(s *scenario.Scenario, d *domains, first int) *quality {
	several := 0
	for i := range s.Jobs[first:] {
		if len(s.Jobs[first+i].Gang.Members) > 1 {
			several++
		}
	}
	q := &quality{domains: d, first: first, every: max((several+mostJudged-1)/mostJudged, 1)}
	for _, total := range s.Ledger.Total {
		for r, amount := range total {
			if r == len(q.most) {
				q.most = append(q.most, 0)
			}
			q.most[r] = max(q.most[r], amount)
		}
	}
	return q
}

// judge rates a start before its capacity is taken. One of a single member has no peers: it is as good as any.
func (q *quality) judge(job int, s *start, free topology.Ledger, rules broken) {
	paid, used := q.domains.price(&s.job.Gang, s.nodes)
	s.domains, s.spread = used[:len(used)-1], int(used[len(used)-1])
	if len(s.nodes) < 2 {
		s.q = 1
		return
	}
	if job < q.first {
		return
	}
	q.seen++
	if (q.seen-1)%q.every != 0 {
		return
	}
	ideal := best{bound: paid.cost, least: used}
	if !q.tight(s, paid, used) {
		ideal = q.best(s, paid, used, free, rules)
	}
	// Where a single node would have sufficed, the best costs nothing, and no quotient expresses the difference: both
	// are then counted as if they crossed one edge between nodes more.
	extra := int64(0)
	if ideal.bound == 0 {
		extra = paid.unit
	}
	cost, bound := float64(paid.cost+extra), float64(min(ideal.bound, paid.cost)+extra)
	s.q = bound / cost
	q.q, q.gaps = append(q.q, s.q), append(q.gaps, (cost-bound)/bound)
	q.byWork.add(s.q, work(s.job))
	q.inversions += paid.inversions
	if level := q.domains.closest(); level >= 0 && used[level] > 1 && ideal.least[level] == 1 {
		q.split++
	}
	if ideal.bounded && ideal.bound < paid.cost {
		q.bounded++
	}
}

// best is the best that was possible.
type best struct {
	bound int64
	// least is the fewest domains of each level that would have done.
	least   []int32
	bounded bool
}

// tight reports whether the placement is as good as any by itself, so that no solver is needed: in one domain of every
// level, and on as few nodes as empty ones would do, each of them entered once.
func (q *quality) tight(s *start, paid price, used []int32) bool {
	g := &s.job.Gang
	if paid.cost == 0 {
		return true
	}
	levels := len(used) - 1
	if len(g.Shapes) != 1 || g.Communication == topology.AllToAll || paid.inversions > 0 ||
		slices.ContainsFunc(used[:levels], func(n int32) bool { return n > 1 }) {
		return false
	}
	like := shape{demand: g.Shapes[0].Demand}
	perNode := max(like.room(q.most, 0), 1)
	return int64(used[levels]) <= (int64(len(s.nodes))+perNode-1)/perNode
}

// best returns the best placement that was possible, by the solver itself: this measures a placement and decides
// nothing. A start that breaks the gang's rules is compared with the best placement without them.
func (q *quality) best(s *start, paid price, used []int32, free topology.Ledger, rules broken) best {
	gang := s.job.Gang
	gang.Min, gang.Members = 0, make([]topology.Member, len(s.ranks))
	for i, rank := range s.ranks {
		gang.Members[i] = s.job.Gang.Members[rank]
	}
	if rules.any() {
		gang.Required, gang.Segment, gang.Spread, gang.Spares, gang.PerNode = "", topology.Segment{}, topology.Spread{},
			topology.Spares{}, 0
		gang.Box = grid.Size{}
	}
	p, shortfall, err := topology.Place(free, gang)
	if err != nil || shortfall != nil {
		return best{bound: paid.cost, least: used} // it took missing resources: nothing better was possible
	}
	b := best{bound: p.Bound, bounded: !p.Optimal(), least: make([]int32, len(p.Levels))}
	for l, use := range p.Levels {
		b.least[l] = int32(use.Least)
	}
	return b
}

// quality sums up.
func (q *quality) quality() Quality {
	of := Quality{
		MeanQ: 1, P05Q: 1, Split: q.split, RankInversions: q.inversions,
		Samples: len(q.q), Every: q.every, Bounded: q.bounded,
	}
	if len(q.q) == 0 {
		return of
	}
	sorted, gaps := slices.Sorted(slices.Values(q.q)), slices.Sorted(slices.Values(q.gaps))
	of.MeanQ, of.P05Q = mean(sorted), percentile(sorted, 5)
	of.MeanGap, of.P95Gap = mean(gaps), percentile(gaps, 95)
	return of
}
