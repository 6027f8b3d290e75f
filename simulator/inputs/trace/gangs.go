package trace

import (
	"fmt"
	"math"
	"time"
)

// The numbers of Gangs.
const (
	// gangsMost is the largest number of GPUs of a gang, so that a fleet of 1,024 holds several.
	gangsMost = 512
	// gangsDemand is the mean number of GPUs that the gangs request.
	gangsDemand = 1024
	gangsTeams  = 16
	// gangsShortest is the least run time of a gang, in seconds.
	gangsShortest = 60
)

// gangs makes so many jobs of several nodes, from 1 to 1,000,000, and none of one node: in the public traces, jobs of
// several nodes are one in three hundred (Philly) to one in twenty (Kalos), so that a mean over jobs says nothing of
// gangs.
//
// It is synthetic. Sizes are drawn in the shares of the jobs that Acme publishes of Seren (Hu et al., NSDI '24,
// gpunum_cdf_by_trace; CC-BY-4.0) for more than 8 and at most 512 GPUs, met to the job. The mean run time of a size
// follows from its share of the jobs and of the GPU time there; each job's is drawn evenly between a tenth and 19
// tenths of it, for no spread is published by size. Arrivals are a Poisson process of a known count, over as long as
// 1,024 GPUs need for the work, and 16 tenants are equally likely; both are ours. All have one priority, and state no
// run time.
func gangs(n int, seed uint64) (Trace, error) {
	tables, err := readAcme(Seren.name())
	if err != nil {
		return Trace{}, err
	}
	sizes, shares, means := tables.gangs()
	name := fmt.Sprintf("gangs-%d", n)
	t := Trace{
		Name:      name,
		Synthetic: true,
		Source: fmt.Sprintf(
			"synthetic, sizes and their GPU time from Acme Seren (Hu et al., NSDI '24; CC-BY-4.0), those of 2 to 64 nodes: %d jobs",
			n,
		),
	}
	r := chance(seed, streamGangs)
	var work int64
	for i, count := range split(n, shares) {
		for range count {
			const tenths = 1000
			seconds := max(means[i]*(tenths/10+r.Int64N(18*tenths/10+1))/tenths, gangsShortest)
			work += seconds * int64(sizes[i])
			t.Jobs = append(t.Jobs, Job{
				Tenant:   fmt.Sprintf("team-%02d", r.IntN(gangsTeams)+1),
				Duration: time.Duration(seconds) * time.Second,
				Podsets:  gang(sizes[i]),
			})
		}
	}
	r.Shuffle(len(t.Jobs), func(i, j int) { t.Jobs[i], t.Jobs[j] = t.Jobs[j], t.Jobs[i] })
	span := max(work/gangsDemand, 1)
	for i := range t.Jobs {
		t.Jobs[i].ID = fmt.Sprintf("gang-%06d", i+1)
		t.Jobs[i].Submit = time.Duration(r.Int64N(span)) * time.Second
	}
	return t.sorted(), nil
}

// gangs returns the sizes of several nodes in GPUs, their cumulative shares of the jobs, and the mean run time of such
// jobs in seconds.
func (a acmeTables) gangs() (sizes []int, shares, means []int64) {
	var sum, jobs, gpuTime int64
	for _, s := range a.sizes {
		ofJobs, ofTime := s.jobs-jobs, s.time-gpuTime
		jobs, gpuTime = s.jobs, s.time
		gpus := s.representative()
		if gpus <= gpusPerNode || gpus > gangsMost || ofJobs == 0 {
			continue
		}
		sum += ofJobs
		mean := float64(a.gpuSeconds) / float64(a.jobs) * float64(ofTime) / float64(ofJobs) / float64(gpus)
		sizes, shares, means = append(sizes, gpus), append(shares, sum), append(means, int64(math.Round(mean)))
	}
	return sizes, shares, means
}
