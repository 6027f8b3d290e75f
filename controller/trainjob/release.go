package trainjob

import (
	"context"
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// linger is the time for which the group of a job that ended is retained, so that users who look at a job that just
// ended still see its gang's place. All objects of a job are deleted within 60 s of its end.
const linger = 45 * time.Second

// release deletes the objects that a suspended or ended job no longer needs: its groups, whose shared claims are freed
// only then, after them its ComputeDomain, and the JobSet of a job that missed its deadline. It runs after the status
// was written, so that a job never looks unfinished after its JobSet was deleted, and it runs again until all are
// deleted. It returns the requeue delay for groups that are retained for now; zero if none is.
func (r *Reconciler) release(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (time.Duration, error) {
	if job.Ended() {
		if err := r.removeForeign(ctx, job, jobSet); err != nil {
			return 0, err
		}
	}
	if overdue(job) && jobSet != nil {
		if err := r.remove(ctx, job, jobSet); err != nil {
			return 0, err
		}
	}
	if !job.Ended() && !suspended(job) {
		return 0, nil
	}
	objects, err := r.gangObjects(ctx, job)
	if err != nil {
		return 0, err
	}
	var kept time.Duration
	for _, object := range objects {
		if err := r.markEnded(ctx, job, object); err != nil {
			return 0, err
		}
		if left := r.lingers(job, object); left > 0 {
			kept = earlierDelay(kept, left)
			continue
		}
		if err := r.remove(ctx, job, object); err != nil {
			return 0, err
		}
	}
	if kept > 0 {
		return kept, nil
	}
	return r.releaseDomain(ctx, job, jobSet, objects)
}

// lingers returns the time for which an object of the job's group may stay. A group with shared claims is deleted at
// once, since other gangs wait for the devices, and so is the group of a suspended job, which must be deleted before
// the job is resumed.
func (r *Reconciler) lingers(job *trainerv1alpha1.TrainJob, object client.Object) time.Duration {
	group, isGroup := object.(*schedulingv1beta1.PodGroup)
	if suspended(job) || isGroup && shares(group) {
		return 0
	}
	return max(0, linger-r.Clock.Since(endOf(job)))
}

// markEnded says on a group of an ended job that its members leave for good, so that the scheduler reserves no places
// for them: JobSet deletes those that still run, such as the workers of an MPI job.
func (r *Reconciler) markEnded(ctx context.Context, job *trainerv1alpha1.TrainJob, object client.Object) error {
	group, ok := object.(*schedulingv1beta1.PodGroup)
	if !ok || !job.Ended() || !owns(job, group) || group.DeletionTimestamp != nil ||
		group.Annotations[topology.AnnotationOnLoss] == topology.OnLossEnded {
		return nil
	}
	next := group.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, topology.AnnotationOnLoss, topology.OnLossEnded)
	same := client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{}) // not one of its name
	err := r.Client.Patch(ctx, next, same, client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil &&
		!apierrors.IsConflict(err) { // its change is an event, and then this is tried again
		return fmt.Errorf("saying that %s needs no places: %w", describe(group), err)
	}
	return nil
}

// remove deletes an object of the job's, unless it is foreign.
func (r *Reconciler) remove(ctx context.Context, job *trainerv1alpha1.TrainJob, object client.Object) error {
	if !owns(job, object) {
		return nil
	}
	return r.erase(ctx, object)
}

// erase deletes just this object, unless it is on its way out already. Another one of its name stays.
func (r *Reconciler) erase(ctx context.Context, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := object.GetUID()
	err := r.Client.Delete(ctx, deletable(object), client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// deletable is the object as the client can delete it. Where finalizers hold an object, the answer is the object
// itself, and of a kind that the scheme does not know only an unstructured one can be read.
func deletable(object client.Object) client.Object {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object
	}
	identity := &unstructured.Unstructured{}
	identity.SetGroupVersionKind(metadata.GroupVersionKind())
	identity.SetNamespace(metadata.Namespace)
	identity.SetName(metadata.Name)
	return identity
}
