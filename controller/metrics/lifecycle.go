package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
)

// remembered is the number of jobs that are known to have been counted. One that is forgotten has long left its first
// rendering behind.
const remembered = 65536

// Job holds the labels under which a TrainJob is counted. Its name is none of them: names are without end.
type Job struct {
	// Namespace is the job's. Only counters have it; a histogram would cost a dozen series for each.
	Namespace string
	// Runtime is the name of a ClusterTrainingRuntime. Tenants name TrainingRuntimes as they like: those are all
	// "TrainingRuntime".
	Runtime string
	// Framework is the framework's name, or Unknown.
	Framework string
}

func (j Job) labels(more ...string) []string {
	if j.Framework == Unknown {
		j.Runtime = Unknown
	}
	return append([]string{j.Namespace, j.Runtime, j.Framework}, more...)
}

func (c *Controller) addLifecycle(factory promauto.Factory) {
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Namespace: upstream, Name: name, Help: help},
			append([]string{"namespace", "runtime", "framework"}, more...))
	}
	c.created = counter("trainjobs_created_total", "TrainJobs that were rendered for the first time.")
	c.completed = counter("trainjobs_completed_total", "TrainJobs that completed.")
	c.failed = counter(
		"trainjobs_failed_total",
		"TrainJobs that failed for good, by the reason of their condition.",
		"reason",
	)
	c.suspended = counter(
		"trainjobs_suspended_total",
		"Suspensions of TrainJobs; one that is created suspended counts.",
	)
	c.resumed = counter("trainjobs_resumed_total", "Resumptions of TrainJobs.")
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return factory.NewHistogramVec(
			prometheus.HistogramOpts{Namespace: upstream, Name: name, Help: help, Buckets: buckets}, labels)
	}
	c.untilJobSet = histogram("trainjob_jobset_wait_seconds",
		"Time from the creation of a TrainJob, which is known to the second, until its JobSet was made.",
		[]float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600}, "framework")
	c.duration = histogram(
		"trainjob_duration_seconds",
		"Time from the creation of a TrainJob to its end, waiting and suspensions included.",
		days(),
		"framework",
		"result",
	)
	c.running = histogram("trainjob_run_duration_seconds",
		"Time from the creation of a TrainJob, or its last resumption, to its end.", days(), "framework", "result")
}

// days returns the bounds for durations from seconds to weeks.
func days() []float64 {
	const minute, hour, day = 60, 3600, 86400
	return []float64{
		1,
		5,
		15,
		minute,
		5 * minute,
		15 * minute,
		30 * minute,
		hour,
		2 * hour,
		6 * hour,
		12 * hour,
		day,
		3 * day,
		7 * day,
		14 * day,
	}
}

// Created counts a job when it was rendered for the first time, once, however often that seems so.
func (c *Controller) Created(uid types.UID, job Job) {
	if _, known := c.jobs.Get(uid); known {
		return
	}
	c.jobs.Add(uid, false)
	c.created.WithLabelValues(job.labels()...).Inc()
}

// JobSetMade counts the time from a job's creation to its JobSet's. It counts the first one of jobs that this process
// saw created: a later JobSet of the same job, made after days, does not measure the controller.
func (c *Controller) JobSetMade(uid types.UID, job Job, after time.Duration) {
	if had, known := c.jobs.Get(uid); !known || had == true {
		return
	}
	c.jobs.Add(uid, true)
	c.untilJobSet.WithLabelValues(job.Framework).Observe(max(0, after.Seconds()))
}

// Suspended counts a suspension.
func (c *Controller) Suspended(job Job) { c.suspended.WithLabelValues(job.labels()...).Inc() }

// Resumed counts a resumption.
func (c *Controller) Resumed(job Job) { c.resumed.WithLabelValues(job.labels()...).Inc() }

// Span is the duration of a job: from its creation, and from its creation or last resumption.
type Span struct {
	Total, Running time.Duration
}

// Completed counts a job that completed.
func (c *Controller) Completed(job Job, lasted Span) {
	c.completed.WithLabelValues(job.labels()...).Inc()
	c.lasted(job, "complete", lasted)
}

// Failed counts a job that failed, for a reason that a controller gave.
func (c *Controller) Failed(job Job, reason string, lasted Span) {
	c.failed.WithLabelValues(job.labels(reason)...).Inc()
	c.lasted(job, "failed", lasted)
}

func (c *Controller) lasted(job Job, result string, lasted Span) {
	c.duration.WithLabelValues(job.Framework, result).Observe(max(0, lasted.Total.Seconds()))
	c.running.WithLabelValues(job.Framework, result).Observe(max(0, lasted.Running.Seconds()))
}
