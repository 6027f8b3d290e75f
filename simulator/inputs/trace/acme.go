package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// AcmeCluster is one of the two clusters of Shanghai AI Lab whose jobs Acme makes.
type AcmeCluster int

// The clusters.
const (
	// Kalos stands for half a year of 19,907 jobs that ask for 335 GPUs on average: nearly all evaluations of a minute
	// or two, nearly all GPU time in pretraining with 256 to 1,024 GPUs.
	Kalos AcmeCluster = iota
	// Seren stands for four weeks of 101,015 jobs that ask for 1,370 GPUs on average, of all sizes.
	Seren
)

// name is the cluster's published name.
func (c AcmeCluster) name() string {
	if c == Seren {
		return "Seren"
	}
	return "Kalos"
}

// days returns the number of days that are made, of the publishedDays behind the tables.
func (c AcmeCluster) days() int64 {
	if c == Seren {
		return 28
	}
	return publishedDays
}

// publishedDays are those from March to August 2023.
const publishedDays = 184

// small is the largest number of GPUs of an evaluation, and less than any pretraining has.
const small = 8

// Types of jobs that are treated in a way of their own.
const (
	evaluation  = "Evaluation"
	pretraining = "Pretrain"
)

// acme makes jobs that have the marginals which are published of a cluster of Shanghai AI Lab. They are synthetic: no
// record of any job is in them.
//
// Types are drawn in their share of the jobs, durations in their type's shares and evenly on a logarithmic scale
// between two published ones, sizes in their share of the jobs. The size of each job is drawn, and then exchanged until
// the shares of GPU time, by type and by size, are as published (deal). Evaluations have at most 8 GPUs and pretraining
// has more. The tables do not allow this of debugging: in Kalos it takes 1.6 % of GPU time, and all jobs up to 8 GPUs
// take 0.6 %.
//
// The tables of Seren do not agree with each other: with its durations, sizes that have the published shares of GPU
// time would need 1.4 times the published GPU time. The total is met there, and shares of GPU time within two points.
//
// Arrivals are not published, so these are ours: a Poisson process of so many jobs that has twice the rate from 9 to 21
// o'clock, where evaluations arrive in batches of 1 to 63, as for the checkpoints of a model. So are priorities
// (pretraining is first, evaluations are last and may be preempted), and tenants are the types. End states and
// estimates are not set.
func acme(cluster AcmeCluster, seed uint64) (Trace, error) {
	tables, err := readAcme(cluster.name())
	if err != nil {
		return Trace{}, err
	}
	n := int(tables.jobs * cluster.days() / publishedDays)
	t := Trace{
		Name: "acme-" + strings.ToLower(cluster.name()),
		Source: fmt.Sprintf(
			"synthetic, marginals from Acme %s (Hu et al., NSDI '24; CC-BY-4.0): %d jobs of %d days, seed %d",
			cluster.name(),
			n,
			cluster.days(),
			seed,
		),
		Synthetic: true,
	}
	drafts := tables.draft(n, chance(seed, streamDurations))
	tables.deal(drafts, chance(seed, streamSizes))
	tables.arrive(drafts, cluster.days(), chance(seed, streamArrivals))
	of := make([]int, len(tables.types))
	for _, d := range drafts {
		of[d.kind]++
		tenant := strings.ToLower(tables.types[d.kind].name)
		t.Jobs = append(t.Jobs, Job{
			ID:          fmt.Sprintf("%s-%06d", tenant, of[d.kind]),
			Tenant:      tenant,
			Submit:      time.Duration(d.submit) * time.Second,
			Duration:    time.Duration(d.seconds) * time.Second,
			Podsets:     gang(tables.sizes[d.size].representative()),
			Priority:    priority(tables.types[d.kind].name),
			Preemptible: tables.types[d.kind].name == evaluation,
		})
	}
	return t.sorted(), nil
}

func priority(kind string) int32 {
	switch kind {
	case pretraining:
		return 200
	case evaluation:
		return 0
	}
	return 100
}

// draft is a job that is being made. Its kind and size are indices into the tables; submit and seconds are in seconds.
type draft struct {
	kind, size      int
	submit, seconds int64
}

// draft makes jobs of all types with their durations, one type after another.
func (a acmeTables) draft(n int, r *rand.Rand) []draft {
	shares := make([]int64, len(a.types))
	var sum int64
	for i, kind := range a.types {
		sum += kind.jobs
		shares[i] = sum
	}
	var drafts []draft
	for i, count := range split(n, shares) {
		first := len(drafts)
		for rank := range count {
			drafts = append(drafts, draft{kind: i, seconds: min(a.types[i].duration(rank, count, r), a.longest)})
		}
		same := drafts[first:]
		r.Shuffle(len(same), func(i, j int) { same[i], same[j] = same[j], same[i] })
	}
	return drafts
}

// split divides n by cumulative shares, whose last is all.
func split(n int, shares []int64) []int {
	counts := make([]int, len(shares))
	all, before := shares[len(shares)-1], 0
	for i, share := range shares {
		upTo := int((int64(n)*share + all/2) / all)
		counts[i], before = upTo-before, upTo
	}
	return counts
}

// grain is the number of steps into which the distance between two ranks is divided.
const grain = 1 << 16

// duration returns the run time in seconds of the job of that rank among so many of the type, by its duration: drawn
// between its rank and the next, so that a few jobs have the published shares as well as many.
func (k acmeType) duration(rank, of int, r *rand.Rand) int64 {
	at := (int64(rank)*grain + r.Int64N(grain)) * whole / int64(of) // in grains of a share
	var below int64
	for _, d := range k.durations {
		upTo := d.jobs * grain
		if at < upTo {
			if d.seconds == 1 {
				return 1
			}
			return within(d.seconds/2, (at-below)*grain/(upTo-below))
		}
		below = upTo
	}
	return k.durations[len(k.durations)-1].seconds
}

// within is the whole number, above so many and at most twice as many, that lies so many grains into this octave. The
// power of two is made of roots and products, which are the same on every machine.
func within(above, grains int64) int64 {
	power, root := 1.0, 2.0
	for bit := int64(grain / 2); bit > 0; bit /= 2 {
		root = math.Sqrt(root)
		if grains&bit != 0 {
			power *= root
		}
	}
	return int64(float64(above)*power) + 1
}

// representative returns the number of GPUs of jobs of this size. The published sizes are powers of two, and ranges
// between two of them; this is taken as the middle.
func (s acmeSize) representative() int {
	if s.gpus&(s.gpus-1) == 0 {
		return s.gpus
	}
	return (s.gpus + 1) / 4 * 3
}
