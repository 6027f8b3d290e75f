package importer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// silence removes the estimates of a share of the jobs that have one (Options.Silent), so that their owners state no
// deadline.
//
// Owners differ in whether they state deadlines, not jobs of one owner: tenants are silenced one after the other, in
// the order of a hash of the seed and their name, until the share of jobs is reached. Of the last tenant as many jobs
// are silenced as are missing, in the order of the same hash of their IDs: tenants are few and of unequal size, and a
// share that is missed by a fifth would be another comparison.
func (s *builder) silence() {
	if s.Options.Silent == 0 {
		return
	}
	byTenant, stating := make(map[string][]*scenario.Job), 0
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.Estimate > 0 {
			byTenant[j.Tenant] = append(byTenant[j.Tenant], j)
			stating++
		}
	}
	tenants := make([]string, 0, len(byTenant))
	for tenant := range byTenant {
		tenants = append(tenants, tenant)
	}
	hash := func(name string) uint64 { return hashed(s.Options.Seed, streamSilence, name) }
	slices.SortFunc(tenants, func(a, b string) int { return cmp.Or(cmp.Compare(hash(a), hash(b)), cmp.Compare(a, b)) })
	left := int(math.Round(s.Options.Silent * float64(stating)))
	for _, tenant := range tenants {
		jobs := byTenant[tenant]
		if left < len(jobs) {
			slices.SortFunc(jobs, func(a, b *scenario.Job) int {
				return cmp.Or(cmp.Compare(hash(a.ID), hash(b.ID)), cmp.Compare(a.ID, b.ID))
			})
		}
		for _, j := range jobs[:min(left, len(jobs))] {
			j.Estimate = 0
		}
		left -= min(left, len(jobs))
	}
	s.Source += fmt.Sprintf("; owners of %.4g %% of the jobs state the deadlines", 100*(1-s.Options.Silent))
}

// The streams of hashes of the seed.
const (
	streamSilence uint64 = iota + 12
	streamWishes
	streamElastic
)

// hashed returns a number that depends on the seed and a name only. FNV-1a mixes its last bytes little, so that a round
// of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) follows.
func hashed(seed, stream uint64, name string) uint64 {
	h := fnv.New64a()
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], seed)
	binary.LittleEndian.PutUint64(head[8:], stream)
	_, _ = h.Write(head[:]) // a hash never fails
	_, _ = h.Write([]byte(name))
	z := h.Sum64()
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
