package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// The states of a TrainJob.
const (
	// StateSuspended is a job that is suspended.
	StateSuspended = "suspended"
	// StatePending is a job that is to run and has no ReplicatedJob with ready pods.
	StatePending = "pending"
	// StateRunning is a job with a ReplicatedJob that has ready pods.
	StateRunning = "running"
	// StateComplete is a job that completed.
	StateComplete = "complete"
	// StateFailed is a job that failed for good.
	StateFailed = "failed"
)

// Population is a group of existing TrainJobs: their namespace, runtime and state.
type Population struct {
	Namespace, Runtime, State string
}

// active reports whether its jobs run, or are to run.
func (p Population) active() bool { return p.State == StatePending || p.State == StateRunning }

// Census counts TrainJobs each time that the metrics are read: a count that follows events drifts with the first missed
// event, and is wrong after each start.
type Census struct {
	count func() map[Population]int
}

// NewCensus returns a collector of the populations that count returns. Others have no series.
func NewCensus(count func() map[Population]int) *Census { return &Census{count: count} }

// sheet holds the counts of one census: a new one each time, so that two concurrent reads do not disturb each other.
type sheet struct {
	jobs, active *prometheus.GaugeVec
}

func newSheet() sheet {
	return sheet{
		jobs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: upstream, Name: "trainjobs",
			Help: "TrainJobs that exist, by state (suspended, pending, running, complete, failed).",
		}, []string{"namespace", "runtime", "state"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: upstream, Name: "trainjobs_active",
			Help: "TrainJobs that run or are to run: neither suspended nor over.",
		}, []string{"namespace", "runtime"}),
	}
}

// Describe sends the descriptions of the collected metrics.
func (c *Census) Describe(descriptions chan<- *prometheus.Desc) {
	blank := newSheet()
	blank.jobs.Describe(descriptions)
	blank.active.Describe(descriptions)
}

// Collect counts, and sends the result.
func (c *Census) Collect(metrics chan<- prometheus.Metric) {
	counted := newSheet()
	for population, jobs := range c.count() {
		counted.jobs.WithLabelValues(population.Namespace, population.Runtime, population.State).Add(float64(jobs))
		// Also without active jobs: a series that ended with its last active job would leave its last value in a graph.
		active := counted.active.WithLabelValues(population.Namespace, population.Runtime)
		if population.active() {
			active.Add(float64(jobs))
		}
	}
	counted.jobs.Collect(metrics)
	counted.active.Collect(metrics)
}
