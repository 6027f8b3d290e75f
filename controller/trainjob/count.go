package trainjob

import (
	"k8s.io/apimachinery/pkg/api/meta"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// timed measures a phase until the returned function is called.
func (r *Reconciler) timed(phase string) (done func()) {
	start := r.Clock.Now()
	return func() { r.Metrics.Passed(phase, r.Clock.Since(start)) }
}

// counted returns the labels under which a job is counted.
func counted(job *trainerv1alpha1.TrainJob, framework string) metrics.Job {
	return metrics.Job{Namespace: job.Namespace, Runtime: runtimeLabel(job), Framework: framework}
}

// runtimeLabel is a job's runtime in metrics: the name of a ClusterTrainingRuntime, which an administrator gave, or
// else only the kind, because tenants may create any number of TrainingRuntimes.
func runtimeLabel(job *trainerv1alpha1.TrainJob) string {
	ref := resolve.ReferenceOf(job)
	if ref.Kind == trainerv1alpha1.ClusterTrainingRuntimeKind {
		return ref.Key.Name
	}
	return ref.Kind
}

// count counts a job's transitions between two statuses; the second one was just written over the first and over no
// other: so each transition is counted once, whatever the cache shows later and however often the controller starts.
func (r *Reconciler) count(old, next *trainerv1alpha1.TrainJob, framework string) {
	job := counted(next, framework)
	const suspended = trainerv1alpha1.TrainJobSuspended
	was, is := meta.IsStatusConditionTrue(
		old.Status.Conditions,
		suspended,
	), meta.IsStatusConditionTrue(
		next.Status.Conditions,
		suspended,
	)
	switch {
	case !was && is:
		r.Metrics.Suspended(job)
	case was && !is:
		r.Metrics.Resumed(job)
	}
	end := next.Ending()
	if end == nil || old.Ended() {
		return
	}
	lasted := metrics.Span{
		Total: end.LastTransitionTime.Sub(
			next.CreationTimestamp.Time,
		),
		Running: end.LastTransitionTime.Sub(plan.ActiveSince(next)),
	}
	if end.Type == trainerv1alpha1.TrainJobComplete {
		r.Metrics.Completed(job, lasted)
	} else {
		r.Metrics.Failed(job, end.Reason, lasted)
	}
}
