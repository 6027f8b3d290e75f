package trace

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// exchanges is the number of attempted exchanges of sizes, for each job.
const exchanges = 16

// deal gives each job a size. The shares of the jobs that each size has are met to the job. Then randomly drawn pairs
// exchange their sizes if that brings the GPU time of each type and of each size, together, closer to the published
// shares.
func (a acmeTables) deal(drafts []draft, r *rand.Rand) {
	a.dealAtRandom(drafts, r)
	longest := make([]*draft, len(drafts))
	for i := range drafts {
		longest[i] = &drafts[i]
	}
	slices.SortStableFunc(longest, func(a, b *draft) int { return cmp.Compare(b.seconds, a.seconds) })
	d := a.dealer(drafts)
	for range exchanges * len(drafts) {
		first, second := pair(len(longest), r)
		d.exchange(longest[first], longest[second])
	}
}

// pair draws two of so many jobs; the longest of all is the first. A few long jobs have most of the GPU time, so one
// among the longest ten is as likely as one among the next ninety. Every other time the two run about as long: such a
// pair can take from one type for another without a change to the sizes.
func pair(n int, r *rand.Rand) (first, second int) {
	first = r.IntN(max(1, n>>r.IntN(bits.Len(uint(n)))))
	if r.IntN(2) == 0 {
		return first, r.IntN(max(1, n>>r.IntN(bits.Len(uint(n)))))
	}
	return first, min(n-1, first+r.IntN(2+first/8))
}

// dealAtRandom gives pretraining only large sizes, evaluations only small ones, and the others the remaining ones.
func (a acmeTables) dealAtRandom(drafts []draft, r *rand.Rand) {
	shares := make([]int64, len(a.sizes))
	for i, size := range a.sizes {
		shares[i] = size.jobs
	}
	var pools [2][]int // small, large
	for i, count := range split(len(drafts), shares) {
		for range count {
			pool := &pools[0]
			if a.sizes[i].gpus > small {
				pool = &pools[1]
			}
			*pool = append(*pool, i)
		}
	}
	for _, pool := range pools {
		r.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	}
	for i := range drafts {
		switch a.types[drafts[i].kind].name {
		case evaluation:
			drafts[i].size, pools[0] = pools[0][0], pools[0][1:]
		case pretraining:
			drafts[i].size, pools[1] = pools[1][0], pools[1][1:]
		}
	}
	rest := append(pools[0], pools[1]...)
	r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for i := range drafts {
		if kind := a.types[drafts[i].kind].name; kind != evaluation && kind != pretraining {
			drafts[i].size, rest = rest[0], rest[1:]
		}
	}
}

// dealer counts the excess GPU seconds of each type and each size; a negative count is a deficit.
type dealer struct {
	tables         acmeTables
	gpus           []int64
	ofKind, ofSize []int64
}

func (a acmeTables) dealer(drafts []draft) dealer {
	d := dealer{
		tables: a, gpus: make([]int64, len(a.sizes)),
		ofKind: make([]int64, len(a.types)), ofSize: make([]int64, len(a.sizes)),
	}
	total := a.gpuSeconds / a.jobs * int64(len(drafts))
	for i, kind := range a.types {
		d.ofKind[i] = -total / whole * kind.time
	}
	var below int64
	for i, size := range a.sizes {
		d.gpus[i] = int64(size.representative())
		d.ofSize[i] = -total / whole * (size.time - below)
		below = size.time
	}
	for _, job := range drafts {
		d.ofKind[job.kind] += job.seconds * d.gpus[job.size]
		d.ofSize[job.size] += job.seconds * d.gpus[job.size]
	}
	return d
}

// exchange lets two jobs exchange their sizes if this brings the total closer to its targets.
func (d dealer) exchange(a, b *draft) {
	if a.size == b.size || !d.may(a.kind, b.size) || !d.may(b.kind, a.size) {
		return
	}
	before := d.off(a, b)
	d.swap(a, b)
	if d.off(a, b) >= before {
		d.swap(a, b)
	}
}

// may reports whether jobs of that type have that size.
func (d dealer) may(kind, size int) bool {
	switch d.tables.types[kind].name {
	case evaluation:
		return d.tables.sizes[size].gpus <= small
	case pretraining:
		return d.tables.sizes[size].gpus > small
	}
	return true
}

func (d dealer) swap(a, b *draft) {
	for _, job := range []*draft{a, b} {
		d.ofKind[job.kind] -= job.seconds * d.gpus[job.size]
		d.ofSize[job.size] -= job.seconds * d.gpus[job.size]
	}
	a.size, b.size = b.size, a.size
	for _, job := range []*draft{a, b} {
		d.ofKind[job.kind] += job.seconds * d.gpus[job.size]
		d.ofSize[job.size] += job.seconds * d.gpus[job.size]
	}
}

// off returns the deviation of the types and sizes of two jobs that have different sizes.
func (d dealer) off(a, b *draft) int64 {
	far := magnitude(d.ofSize[a.size]) + magnitude(d.ofSize[b.size]) + magnitude(d.ofKind[a.kind])
	if a.kind != b.kind {
		far += magnitude(d.ofKind[b.kind])
	}
	return far
}

func magnitude(x int64) int64 {
	return max(x, -x)
}
