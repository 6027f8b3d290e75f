package trainjob_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// counted are the lifecycle counters that are not zero, by their short names.
func (w *fixture) counted() map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "kubeflow_trainer_trainjobs_")
		for _, metric := range family.GetMetric() {
			if ours {
				counted[strings.TrimSuffix(name, "_total")] += metric.GetCounter().GetValue()
			}
		}
	}
	return counted
}

// wantCounted compares the counters.
func (w *fixture) wantCounted(when string, want map[string]float64) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.counted()); diff != "" {
		w.t.Errorf("%s: counters (-want +got):\n%s", when, diff)
	}
}

func TestMetrics_TransitionCountsOnce(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
	twice := func() { w.settle(); w.settle() }
	twice()
	w.wantCounted("created suspended", map[string]float64{"created": 1, "suspended": 1})
	w.restart()
	twice()
	w.wantCounted("another process", map[string]float64{})
	w.change(suspend(false))
	twice()
	w.wantCounted("resumed", map[string]float64{"resumed": 1})
	w.change(suspend(true))
	twice()
	w.wantCounted("suspended again", map[string]float64{"resumed": 1, "suspended": 1})
	w.clock.SetTime(created().Add(time.Hour))
	w.change(suspend(false))
	twice()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{
			{
				Type:               "Completed",
				Status:             "True",
				Reason:             "AllJobsCompleted",
				LastTransitionTime: metav1.NewTime(created().Add(3 * time.Hour)),
			},
		}
	})
	twice()
	w.wantCounted("completed", map[string]float64{"resumed": 2, "suspended": 1, "completed": 1})
	for name, want := range map[string]float64{"trainjob_duration_seconds": 10800, "trainjob_run_duration_seconds": 7200} {
		if count, sum := w.histogram("kubeflow_trainer_" + name); count != 1 || sum != want {
			t.Errorf("%s: %d observations with sum %v, want one of %v s", name, count, sum, want)
		}
	}
	w.restart()
	twice()
	w.wantCounted("over for another process", map[string]float64{})
}

// histogram returns the number of observed values, and their sum.
func (w *fixture) histogram(name string) (uint64, float64) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			histogram := family.GetMetric()[0].GetHistogram()
			return histogram.GetSampleCount(), histogram.GetSampleSum()
		}
	}
	return 0, 0
}

func TestMetrics_DeadlineCountsAsFailure(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(deadline(60)))
	w.settle()
	w.clock.SetTime(created().Add(2 * time.Minute))
	w.settle()
	w.settle()
	w.wantCounted("missed", map[string]float64{"created": 1, "failed": 1})
}

// staleReader shows an earlier version of a TrainJob, like a stale cache.
type staleReader struct {
	client.Client

	job *trainerv1alpha1.TrainJob
}

func (s staleReader) Get(
	ctx context.Context,
	key client.ObjectKey,
	into client.Object,
	options ...client.GetOption,
) error {
	if job, isJob := into.(*trainerv1alpha1.TrainJob); isJob {
		s.job.DeepCopyInto(job)
		return nil
	}
	return s.Client.Get(ctx, key, into, options...)
}

// TestReconcile_StaleCacheOverwritesNothing checks that a job with a failure that is not in the cache yet does not lose
// it, whatever else is written, that nothing is counted or released for it, and that it is requeued without an error.
func TestReconcile_StaleCacheOverwritesNothing(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	before := w.job()
	late := w.job()
	late.Status.Conditions = []metav1.Condition{
		{
			Type:               trainerv1alpha1.TrainJobFailed,
			Status:             metav1.ConditionTrue,
			Reason:             trainerv1alpha1.ReasonDeadlineExceeded,
			LastTransitionTime: metav1.NewTime(created()),
		},
	}
	if err := w.Client.Status().Update(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{{Type: "Completed", Status: "True", Reason: "AllJobsCompleted"}}
	})
	w.restart()
	cluster := w.Client
	w.Client = staleReader{Client: cluster, job: before}
	result := w.settle()
	w.Client = cluster
	if result.RequeueAfter != time.Second {
		t.Errorf("comes back in %v, want 1 s", result.RequeueAfter)
	}
	if got := w.job().Status.Conditions; len(got) != 1 || got[0].Type != trainerv1alpha1.TrainJobFailed {
		t.Errorf("conditions %v, want only Failed", got)
	}
	if diff := cmp.Diff([]string{"patch TrainJob status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if event := w.event(); event != "" {
		t.Errorf("event %q", event)
	}
	w.wantCounted("stale", map[string]float64{})
	if w.count("torch", metrics.ResultStale) != 1 {
		t.Error("not counted as stale")
	}
}

func TestPopulations(t *testing.T) {
	ready := func(n int32) func(*trainerv1alpha1.TrainJob) {
		return func(job *trainerv1alpha1.TrainJob) {
			job.Status.JobsStatus = []trainerv1alpha1.JobStatus{{Name: "node", Ready: &n}}
		}
	}
	condition := func(kind string) func(*trainerv1alpha1.TrainJob) {
		return func(job *trainerv1alpha1.TrainJob) {
			job.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
		}
	}
	own := func(job *trainerv1alpha1.TrainJob) {
		job.Spec.RuntimeRef = trainerv1alpha1.RuntimeRef{Name: "mine", Kind: new(trainerv1alpha1.TrainingRuntimeKind)}
	}
	others := func(job *trainerv1alpha1.TrainJob) { job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") }
	got := trainjob.Populations(class.Class{}, []trainerv1alpha1.TrainJob{
		*trainJob(), *trainJob(ready(0)), *trainJob(ready(1)), *trainJob(suspend(true), ready(0)), *trainJob(own),
		*trainJob(others),
		*trainJob(ready(1), condition(trainerv1alpha1.TrainJobComplete)),
		*trainJob(suspend(true), condition(trainerv1alpha1.TrainJobFailed)),
	})
	of := func(runtime, state string) metrics.Population {
		return metrics.Population{Namespace: namespace, Runtime: runtime, State: state}
	}
	want := map[metrics.Population]int{
		of("torch", metrics.StatePending): 2, of("torch", metrics.StateRunning): 1,
		of("torch", metrics.StateSuspended): 1, of("TrainingRuntime", metrics.StatePending): 1,
		of("torch", metrics.StateComplete): 1, of("torch", metrics.StateFailed): 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("populations (-want +got):\n%s", diff)
	}
}

// TestCensus_StandbyCountsNothing holds that two replicas do not count each job twice.
func TestCensus_StandbyCountsNothing(t *testing.T) {
	w := newFixture(t, plan.Options{}, trainJob())
	elected := make(chan struct{})
	census := trainjob.Census(t.Context(), w.Client, class.Class{}, elected)
	if got := census(); len(got) != 0 {
		t.Errorf("%v before it leads", got)
	}
	close(elected)
	if got := census(); len(got) != 1 {
		t.Errorf("%v while it leads, want one job", got)
	}
}
