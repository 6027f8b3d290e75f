package openb

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// popular is a demand that future pods are expected to have, and the number of pods of the list with it.
type popular struct {
	demand

	pods int64
}

// popularOf are the most frequent demands that 95 % of the pods have, those for CPU alone included.
func popularOf(pods []trace.OpenbPod) []popular {
	counts := map[demand]int64{}
	for i := range pods {
		counts[demandOf(&pods[i])]++
	}
	var all []popular
	for d, n := range counts {
		all = append(all, popular{d, n})
	}
	slices.SortFunc(all, func(a, b popular) int { return cmp.Or(cmp.Compare(b.pods, a.pods), b.compare(a.demand)) })
	var covered int64
	for i := range all {
		if covered += all[i].pods; 100*covered >= 95*int64(len(pods)) {
			return all[:i+1]
		}
	}
	return all
}

// fragments measures the part of a node's free GPUs that is of no use to the pods that are expected. For a popular
// demand m that the node has no room for, or that requests no GPU, all free GPUs are a fragment, F(m); otherwise the
// free parts of those GPUs that are too full for m. The node's fragmentation is the mean of F(m) over the pods that
// have the demands m.
//
// Source: the paper's definition, and `pkg/utils/frag.go` of its simulator. Memory is ignored.
type fragments struct {
	// pods is the number of pods with popular demands. Fragmentation is in thousandths of a GPU times this, to be
	// exact.
	pods int64
	// byModel are the demands for GPUs that a model satisfies.
	byModel [][]group
}

// group are demands that differ in CPU alone.
type group struct {
	milli int64
	gpus  int
	// cpus ascend; pods[i] is the number of pods with demands of cpus[i] or less.
	cpus, pods []int64
}

func newFragments(all []popular, m models) *fragments {
	f := &fragments{byModel: make([][]group, len(m))}
	ascending := slices.SortedStableFunc(slices.Values(all), func(a, b popular) int { return a.compare(b.demand) })
	for _, p := range ascending {
		f.pods += p.pods
		if p.gpus == 0 {
			continue
		}
		accepts := m.accepted(p.models)
		for model := range m {
			if accepts == nil || accepts[model] {
				f.byModel[model] = include(f.byModel[model], p)
			}
		}
	}
	return f
}

// include adds a demand whose CPU is not less than that of all that are there.
func include(groups []group, p popular) []group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.milli == p.milli && g.gpus == p.gpus })
	if i < 0 {
		i = len(groups)
		groups = append(groups, group{milli: p.milli, gpus: p.gpus})
	}
	g := &groups[i]
	before := int64(0)
	if n := len(g.pods); n > 0 {
		before = g.pods[n-1]
	}
	g.cpus, g.pods = append(g.cpus, p.cpu), append(g.pods, before+p.pods)
	return groups
}

// within returns the number of pods with demands of the group for which the CPU suffices.
func (g *group) within(cpu int64) int64 {
	i, _ := slices.BinarySearch(g.cpus, cpu+1)
	if i == 0 {
		return 0
	}
	return g.pods[i-1]
}

// of is the fragmentation of a node of a model with so much CPU and so much of each GPU free.
func (f *fragments) of(model int, cpu int64, gpus []int64) int64 {
	var free int64
	for _, left := range gpus {
		free += left
	}
	if free == 0 {
		return 0
	}
	sum := f.pods * free
	groups := f.byModel[model]
	for i := range groups {
		g := &groups[i]
		fits, useful := 0, int64(0)
		for _, left := range gpus {
			if left >= g.milli {
				fits++
				useful += left
			}
		}
		if fits >= g.gpus {
			sum -= g.within(cpu) * useful
		}
	}
	return sum
}
