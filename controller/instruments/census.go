package instruments

import (
	"github.com/prometheus/client_golang/prometheus"
)

// The states of a TrainJob.
const (
	// StateSuspended is a job that has been told to wait.
	StateSuspended = "suspended"
	// StatePending is a job that is to run and has no part whose pods are ready.
	StatePending = "pending"
	// StateRunning is a job with a part whose pods are ready.
	StateRunning = "running"
	// StateComplete is a job that completed.
	StateComplete = "complete"
	// StateFailed is a job that failed for good.
	StateFailed = "failed"
)

// Population is a kind of TrainJobs that exist: where they are, what they use and how they are.
type Population struct {
	Namespace, Runtime, State string
}

// active reports whether its jobs run, or are to run.
func (p Population) active() bool { return p.State == StatePending || p.State == StateRunning }

// Census counts TrainJobs each time that somebody asks: what counts up and down with events drifts with the first that is
// missed, and is wrong after each start.
type Census struct {
	count func() map[Population]int
}

// NewCensus returns a collector of what count returns. There is no series for what is not in it.
func NewCensus(count func() map[Population]int) *Census { return &Census{count: count} }

// sheet is what one census is written on: a new one each time, so that two who ask at once do not disturb each other.
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

// Describe sends what is collected.
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
		// Also where nobody is active: a series that ended with its last active job would leave its last value in a graph.
		active := counted.active.WithLabelValues(population.Namespace, population.Runtime)
		if population.active() {
			active.Add(float64(jobs))
		}
	}
	counted.jobs.Collect(metrics)
	counted.active.Collect(metrics)
}
