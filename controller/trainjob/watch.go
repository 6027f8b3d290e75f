package trainjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/turns"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// A job that fails is tried again after a wait that doubles, from the first to the longest. After a long outage of
// JobSet's webhook all jobs continue within a minute of its end.
const (
	firstRetry   = 5 * time.Millisecond
	longestRetry = time.Minute
)

// NewRateLimiter returns the backoff for each job that fails.
func NewRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry)
}

// newQueue makes the queue of reconciliations, in which namespaces take turns.
func newQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return turns.New(name, limiter)
}

// RuntimeIndex is the index under which TrainJobs are found by their runtime.
const RuntimeIndex = "lockstep.dev/runtime"

// IndexByRuntime is the value of a TrainJob under RuntimeIndex.
func IndexByRuntime(object client.Object) []string {
	job, ok := object.(*trainerv1alpha1.TrainJob)
	if !ok {
		return nil
	}
	return []string{resolve.ReferenceOf(job).String()}
}

// SetupWithManager starts reconciling TrainJobs, workers at a time, when mgr starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, workers int) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &trainerv1alpha1.TrainJob{}, RuntimeIndex, IndexByRuntime)
	if err != nil {
		return fmt.Errorf("indexing TrainJobs by runtime: %w", err)
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &schedulingv1beta1.PodGroup{}, GroupIndex, IndexByJob)
	if err != nil {
		return fmt.Errorf("indexing PodGroups by TrainJob: %w", err)
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &statev1alpha1.FrozenTrainJob{}, FrozenIndex, IndexFrozen)
	if err != nil {
		return fmt.Errorf("indexing FrozenTrainJobs by TrainJob: %w", err)
	}
	// A change of a runtime's labels has no effect, and it has no status: only its spec and annotations matter.
	changed := builder.WithPredicates(
		predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	building := ctrl.NewControllerManagedBy(mgr).
		Named("trainjob").
		For(&trainerv1alpha1.TrainJob{}).
		Owns(&jobsetv1alpha2.JobSet{}).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		// A change of the state is our own. A deleted state is recreated, and the state of a deleted job is deleted.
		Watches(&statev1alpha1.FrozenTrainJob{}, r.enqueueFrozen(),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Owns(&schedulingv1beta1.PodGroup{}).
		Watches(&trainerv1alpha1.TrainingRuntime{},
			handler.EnqueueRequestsFromMapFunc(r.JobsOf(trainerv1alpha1.TrainingRuntimeKind)), changed).
		Watches(&trainerv1alpha1.ClusterTrainingRuntime{},
			handler.EnqueueRequestsFromMapFunc(r.JobsOf(trainerv1alpha1.ClusterTrainingRuntimeKind)), changed).
		// Replicas that do not lead fill their caches too: their webhooks read them.
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			EnableWarmup:            new(true),
			RateLimiter:             NewRateLimiter(),
			NewQueue:                newQueue,
		})
	if r.Options.GangAPI != gangapi.Resources {
		building.Owns(&schedulingv1beta1.Workload{})
	}
	if r.Options.ComputeDomains {
		building.Owns(domainMetadata(), builder.OnlyMetadata)
	}
	if r.Authority != nil {
		building.WatchesRawSource(source.Func(r.FollowAuthority))
	}
	if err = building.Complete(r); err != nil {
		return fmt.Errorf("building the TrainJob controller: %w", err)
	}
	return nil
}

// JobsOf finds the TrainJobs that use a runtime of a kind: they may have waited for it, or for its mending. For ended
// jobs only its TTL matters.
func (r *Reconciler) JobsOf(kind string) handler.MapFunc {
	return func(ctx context.Context, runtime client.Object) []reconcile.Request {
		ref := resolve.Reference{Group: trainerv1alpha1.Group, Kind: kind, Key: client.ObjectKeyFromObject(runtime)}
		var jobs trainerv1alpha1.TrainJobList
		err := r.Client.List(ctx, &jobs, client.MatchingFields{RuntimeIndex: ref.String()})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Listing the TrainJobs of a runtime", "runtime", ref)
			return nil
		}
		var requests []reconcile.Request
		for i := range jobs.Items {
			if job := &jobs.Items[i]; r.Class.Handles(job) && (!job.Ended() || expires(runtime)) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			}
		}
		return requests
	}
}
