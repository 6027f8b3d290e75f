package scenarios

import (
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// gang is a job of whole machines.
func gang(id string, pods int, at, runs time.Duration) trace.Job {
	return trace.Job{ID: id, Submit: at, Duration: runs, Podsets: []trace.Podset{{Count: pods, GPUs: gpus}}}
}

// promised sets the estimate of each job to its exact duration.
func promised(jobs ...trace.Job) []trace.Job {
	for i := range jobs {
		jobs[i].Estimate = jobs[i].Duration
	}
	return jobs
}

// prioritized returns the job with a priority; others may evict one of 0 only. Above 0 jobs are urgent: they evict
// whatever that loses.
func prioritized(j trace.Job, priority int32) trace.Job {
	j.Priority, j.Preemptible = priority, priority == 0
	if priority > 0 {
		j.Priority += contention.Urgent
	}
	return j
}

// graced is the job as a preemptible one that needs some time to leave.
func graced(j trace.Job, grace time.Duration) trace.Job {
	j.Preemptible, j.Grace = true, grace
	return j
}

// within returns the job with a level that confines it to one domain.
func within(j trace.Job, level string) trace.Job {
	j.Required = level
	return j
}

// segmented is the job in groups of consecutive ranks, each in one domain of a level.
func segmented(j trace.Job, size int, level string) trace.Job {
	j.Segment = trace.Segment{Size: size, Level: level}
	return j
}

// pods is the job with so many accelerators for each of its pods.
func pods(j trace.Job, each int) trace.Job {
	j.Podsets[0].GPUs = each
	return j
}

// atLeast is the job that may run with fewer pods.
func atLeast(j trace.Job, least int) trace.Job {
	j.MinCount = least
	return j
}

// happens is something that happens to machines.
func happens(kind trace.Kind, at time.Duration, names ...string) trace.Event {
	return trace.Event{At: at, Kind: kind, Nodes: names}
}
