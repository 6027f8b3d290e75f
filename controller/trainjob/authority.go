package trainjob

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// authorityPeriod is the interval between two looks for a new authority. A new one signs nothing for an hour.
const authorityPeriod = 15 * time.Second

// options returns the planner's options for a job with this runtime: the current ones, except for the decisions of the
// job's first rendering. The authority that its pods trust is always the current one.
func (r *Reconciler) options(found resolve.Found) plan.Options {
	options := found.Options(r.Options)
	if options.StatusServer != nil && r.Authority != nil {
		options.StatusServer = &plan.StatusServer{URL: options.StatusServer.URL, Authority: r.Authority()}
	}
	return options
}

// awaitsAuthority reports whether the job's pods would wait for a ConfigMap that cannot be made yet.
func (r *Reconciler) awaitsAuthority(options plan.Options) bool {
	return r.Authority != nil && options.StatusServer != nil && options.StatusServer.Authority == ""
}

// outdated reports whether a ConfigMap has other content than the one that is wanted, as far as that may change while
// its job runs.
func outdated(have, want client.Object) bool {
	return have.GetAnnotations()[plan.AnnotationDigest] != want.GetAnnotations()[plan.AnnotationDigest]
}

// FollowAuthority requeues all unfinished jobs when there is a new authority, as there is for a controller that has
// just started, until ctx ends. Jobs with events are handled first: the queue must be a PriorityQueue.
func (r *Reconciler) FollowAuthority(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) error {
	ordered, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return fmt.Errorf("following the authority: a %T has no priorities; set NewQueue", queue)
	}
	known := ""
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := r.Authority()
		if now == known || now == "" {
			return
		}
		requests, err := r.unfinished(ctx)
		if err != nil {
			klog.FromContext(ctx).
				Error(err, "A new authority does not reach running jobs yet", "retryIn", authorityPeriod)
			return
		}
		known = now
		addLast(ordered, requests)
	}, authorityPeriod)
	return nil
}

// addLast adds requests behind those of jobs that have changed.
func addLast(queue priorityqueue.PriorityQueue[reconcile.Request], requests []reconcile.Request) {
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
}

// unfinished are all jobs that are ours and not over.
func (r *Reconciler) unfinished(ctx context.Context) ([]reconcile.Request, error) {
	var jobs trainerv1alpha1.TrainJobList
	if err := r.Client.List(ctx, &jobs); err != nil {
		return nil, fmt.Errorf("listing TrainJobs: %w", err)
	}
	var requests []reconcile.Request
	for i := range jobs.Items {
		if job := &jobs.Items[i]; !job.Ended() && r.Class.Handles(job) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
	return requests, nil
}
