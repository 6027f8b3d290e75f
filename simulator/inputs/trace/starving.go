package trace

import (
	"fmt"
	"time"
)

// Starvation describes the cluster of Starving, and its starving gang. All are at least 1, GPUs at most MostGPUs.
type Starvation struct {
	// Nodes is the number of nodes of the cluster, GPUs that of each of them.
	Nodes, GPUs int
	// Pods is the number of pods of the gang, which take a whole node.
	Pods int
}

// Arrival of the gang of Starving, its run time, and the end of the stream of small jobs.
const (
	starvesAfter = 2 * time.Hour
	starvingRuns = time.Hour
	streamUntil  = 12 * time.Hour
)

// starving is the worst case of a large gang among small jobs: jobs of one GPU, of 30 to 90 minutes, arrive all the
// time, a tenth more of them than the cluster can run, and a gang of whole nodes arrives among them. It never finds
// free nodes by itself. A scheduler that starts the small jobs as they arrive starts the gang when the stream has
// ended; one that reserves a place for it waits for jobs of at most 90 minutes. It is the reverse of scheduler_perf's
// starvation: there the large jobs that cannot start hold up the small.
//
// The cluster is full from the beginning, by jobs that end evenly within the first 90 minutes.
func starving(s Starvation, seed uint64) Trace {
	gpus, r := int64(s.Nodes)*int64(s.GPUs), chance(seed, streamStarving)
	hours := int64(streamUntil / time.Hour)
	stream := gpus * hours * 11 / 10 // of one hour on average
	t := Trace{
		Name: fmt.Sprintf("starving-%d", s.Pods*s.GPUs),
		Source: fmt.Sprintf(
			"made for %d nodes of %d GPUs: %d jobs of one GPU within %d h, and a gang of %d nodes after %d h",
			s.Nodes,
			s.GPUs,
			gpus+stream,
			hours,
			s.Pods,
			int64(starvesAfter/time.Hour),
		),
		Synthetic: true,
	}
	for i := range gpus + stream {
		j := Job{ID: fmt.Sprintf("small-%06d", i+1), Tenant: "small", Podsets: gang(1)}
		if i < gpus {
			j.Duration = time.Duration(1+r.Int64N(90*60)) * time.Second
		} else {
			j.Submit = time.Duration(r.Int64N(hours*3600)) * time.Second
			j.Duration = time.Duration(30*60+r.Int64N(60*60)) * time.Second
		}
		t.Jobs = append(t.Jobs, j)
	}
	t.Jobs = append(t.Jobs, Job{
		ID: "gang", Tenant: "large", Submit: starvesAfter, Duration: starvingRuns,
		Podsets: []Podset{wholeNodes(s.Pods, s.GPUs)},
	})
	return t.sorted()
}

// wholeNodes is a number of pods that take all GPUs of a node each.
func wholeNodes(count, gpus int) Podset {
	return Podset{
		Count: count, GPUs: gpus, CPU: int64(gpus) * milliCPUPerGPU, Memory: int64(gpus) * memoryPerGPU,
	}
}
