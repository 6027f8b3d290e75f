package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-project/lockstep/controller/metrics"
)

func compare(t *testing.T, registry prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func job() metrics.Job {
	return metrics.Job{Namespace: "team-a", Runtime: "torch-distributed", Framework: "torch"}
}

// TestController_CountsCreationOnce checks that a stale cache, in which a job looks new again, does not count it again,
// and that only the first JobSet measures a job's wait for it.
func TestController_CountsCreationOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := metrics.New(registry)
	c.JobSetMade("older", job(), time.Hour) // began under an earlier process: its JobSet was deleted by hand
	c.Created("a", job())
	c.Created("a", job())
	c.Created("b", job())
	c.JobSetMade("a", job(), 1500*time.Millisecond)
	c.JobSetMade("a", job(), time.Hour)
	compare(t, registry, `
# HELP kubeflow_trainer_trainjobs_created_total TrainJobs that were rendered for the first time.
# TYPE kubeflow_trainer_trainjobs_created_total counter
kubeflow_trainer_trainjobs_created_total{framework="torch",namespace="team-a",runtime="torch-distributed"} 2
# HELP kubeflow_trainer_trainjob_jobset_wait_seconds Time from the creation of a TrainJob, which is known to the second, until its JobSet was made.
# TYPE kubeflow_trainer_trainjob_jobset_wait_seconds histogram
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="1"} 0
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="2"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="5"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="10"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="20"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="30"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="60"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="120"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="300"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="600"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_bucket{framework="torch",le="+Inf"} 1
kubeflow_trainer_trainjob_jobset_wait_seconds_sum{framework="torch"} 1.5
kubeflow_trainer_trainjob_jobset_wait_seconds_count{framework="torch"} 1
`, "kubeflow_trainer_trainjobs_created_total", "kubeflow_trainer_trainjob_jobset_wait_seconds")
}

// TestController_UnrenderedJobHasNoRuntimeLabel holds that names of runtimes that need not exist do not become labels.
func TestController_UnrenderedJobHasNoRuntimeLabel(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := metrics.New(registry)
	for _, name := range []string{"made-up-1", "made-up-2"} {
		c.Failed(
			metrics.Job{Namespace: "team-a", Runtime: name, Framework: metrics.Unknown},
			"DeadlineExceeded",
			metrics.Span{},
		)
	}
	compare(t, registry, `
# HELP kubeflow_trainer_trainjobs_failed_total TrainJobs that failed for good, by the reason of their condition.
# TYPE kubeflow_trainer_trainjobs_failed_total counter
kubeflow_trainer_trainjobs_failed_total{framework="unknown",namespace="team-a",reason="DeadlineExceeded",runtime="unknown"} 2
`, "kubeflow_trainer_trainjobs_failed_total")
}

func TestCensus_TakenAtEachScrape(t *testing.T) {
	registry := prometheus.NewRegistry()
	counts := map[metrics.Population]int{}
	registry.MustRegister(metrics.NewCensus(func() map[metrics.Population]int { return counts }))
	compare(t, registry, "", "kubeflow_trainer_trainjobs", "kubeflow_trainer_trainjobs_active")

	population := func(namespace, state string) metrics.Population {
		return metrics.Population{Namespace: namespace, Runtime: "torch", State: state}
	}
	counts[population("a", metrics.StatePending)] = 2
	counts[population("a", metrics.StateRunning)] = 3
	counts[population("a", metrics.StateSuspended)] = 5
	counts[population("b", metrics.StateComplete)] = 7
	compare(t, registry, `
# HELP kubeflow_trainer_trainjobs TrainJobs that exist, by state (suspended, pending, running, complete, failed).
# TYPE kubeflow_trainer_trainjobs gauge
kubeflow_trainer_trainjobs{namespace="a",runtime="torch",state="pending"} 2
kubeflow_trainer_trainjobs{namespace="a",runtime="torch",state="running"} 3
kubeflow_trainer_trainjobs{namespace="a",runtime="torch",state="suspended"} 5
kubeflow_trainer_trainjobs{namespace="b",runtime="torch",state="complete"} 7
# HELP kubeflow_trainer_trainjobs_active TrainJobs that run or are to run: neither suspended nor over.
# TYPE kubeflow_trainer_trainjobs_active gauge
kubeflow_trainer_trainjobs_active{namespace="a",runtime="torch"} 5
kubeflow_trainer_trainjobs_active{namespace="b",runtime="torch"} 0
`, "kubeflow_trainer_trainjobs", "kubeflow_trainer_trainjobs_active")
}
