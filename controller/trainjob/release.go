package trainjob

import (
	"context"
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// release takes away what a job that is suspended or over no longer needs: its group, whose shared claims are freed
// only then, and the JobSet of a job that missed its deadline. It runs after the status was written, so that a job
// never looks unfinished while its JobSet is gone, and it runs again until all is gone.
func (r *Reconciler) release(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) error {
	if overdue(job) && jobSet != nil {
		if err := r.remove(ctx, job, jobSet); err != nil {
			return err
		}
	}
	if !ended(job) && !suspended(job) {
		return nil
	}
	key := metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}
	for _, object := range []client.Object{
		&schedulingv1beta1.PodGroup{ObjectMeta: key}, &schedulingv1beta1.Workload{ObjectMeta: key},
	} {
		switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), object); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			return fmt.Errorf("getting %T of TrainJob %s: %w", object, client.ObjectKeyFromObject(job), err)
		default:
			if err = r.remove(ctx, job, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes an object of the job, unless it is somebody else's or on its way out already.
func (r *Reconciler) remove(ctx context.Context, job *trainerv1alpha1.TrainJob, object client.Object) error {
	if !metav1.IsControlledBy(object, job) || !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := object.GetUID()
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %T of TrainJob %s: %w", object, client.ObjectKeyFromObject(job), err)
	}
	return nil
}
