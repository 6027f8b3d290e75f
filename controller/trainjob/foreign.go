package trainjob

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// applyForeign makes the group of another scheduler's before the pods that name it. One of the same name that is not
// the job's is left alone.
func (r *Reconciler) applyForeign(ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan) error {
	if planned.ForeignGroup == nil {
		return nil
	}
	have, err := r.foreign(ctx, job, planned.ForeignGroup.GroupVersionKind())
	if err != nil {
		return err
	}
	if have != nil && !owns(job, have) {
		return fmt.Errorf("%s: %w", describe(planned.ForeignGroup), ErrForeign)
	}
	if have == nil {
		have = &metav1.PartialObjectMetadata{}
	}
	return r.applyVersion(ctx, planned.ForeignGroup, have)
}

// foreign reads the metadata of a job's group of that kind; nil if there is none. It is read past the cache: the kinds
// of schedulers that are not installed cannot be watched.
func (r *Reconciler) foreign(
	ctx context.Context, job *trainerv1alpha1.TrainJob, kind schema.GroupVersionKind,
) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kind)
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // absence is a normal answer
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %s: %w", kind.Kind, client.ObjectKeyFromObject(job), err)
	}
	return found, nil
}

// removeForeign deletes the group of another scheduler when the job has ended: no other controller would before the job
// itself is deleted. The pods show its kind.
func (r *Reconciler) removeForeign(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) error {
	if jobSet == nil {
		return nil
	}
	kind, ok := plan.ForeignKind(jobSet)
	if !ok {
		return nil
	}
	found, err := r.foreign(ctx, job, kind)
	if err != nil || found == nil {
		return err
	}
	return r.remove(ctx, job, found)
}
