package trainjob

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/metrics"
)

// patience is the time for which a scrape waits for a cache that is being filled.
const patience = time.Second

// Census counts the TrainJobs of a class in a cache for as long as this process is the one that works: replicas that
// wait would count the same jobs again. elected is closed when it is.
func Census(
	ctx context.Context, cache client.Reader, handled class.Class, elected <-chan struct{},
) func() map[metrics.Population]int {
	return func() map[metrics.Population]int {
		select {
		case <-elected:
		default:
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var jobs trainerv1alpha1.TrainJobList
		// They are only read, and thousands of copies at each scrape would be wasted.
		if err := cache.List(ctx, &jobs, client.UnsafeDisableDeepCopy); err != nil {
			klog.FromContext(ctx).Error(err, "Counting TrainJobs")
			return nil
		}
		return Populations(handled, jobs.Items)
	}
}

// Populations counts the jobs of a class.
func Populations(handled class.Class, jobs []trainerv1alpha1.TrainJob) map[metrics.Population]int {
	counts := map[metrics.Population]int{}
	for i := range jobs {
		if job := &jobs[i]; handled.Handles(job) {
			counts[metrics.Population{Namespace: job.Namespace, Runtime: runtimeLabel(job), State: stateOf(job)}]++
		}
	}
	return counts
}

func stateOf(job *trainerv1alpha1.TrainJob) string {
	switch {
	case meta.IsStatusConditionTrue(job.Status.Conditions, trainerv1alpha1.TrainJobComplete):
		return metrics.StateComplete
	case meta.IsStatusConditionTrue(job.Status.Conditions, trainerv1alpha1.TrainJobFailed):
		return metrics.StateFailed
	case suspended(job):
		return metrics.StateSuspended
	}
	for _, part := range job.Status.JobsStatus {
		if part.Ready != nil && *part.Ready > 0 {
			return metrics.StateRunning
		}
	}
	return metrics.StatePending
}
