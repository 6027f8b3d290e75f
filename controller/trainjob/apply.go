package trainjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// fieldManager owns the fields that are applied. It is upstream's, so that a cluster can change controllers.
	fieldManager = "trainer"
	// waitForGroup is the requeue delay while an earlier PodGroup or JobSet is not deleted yet.
	waitForGroup = time.Second
)

// ErrForeign indicates that an object of the name that a TrainJob needs belongs to another object.
var ErrForeign = errors.New("it exists and belongs to another object")

// apply creates the planned objects, groups and files before the pods that need them. It waits, which is no error,
// while an earlier group or JobSet of the same name is not deleted yet.
func (r *Reconciler) apply(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, jobSet *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	needed := mayApplyJobSet(job, jobSet)
	if len(planned.PodGroups) > 0 && !suspended(job) {
		if waiting, err = r.applyGang(ctx, job, planned.Plan, jobSet); err != nil || waiting {
			return waiting, err
		}
	}
	if jobSet != nil && !jobSet.DeletionTimestamp.IsZero() {
		return true, nil
	}
	if !needed {
		return false, r.restoreFiles(ctx, job, planned.Plan)
	}
	return r.applyPods(ctx, job, planned, jobSet)
}

// applyGang creates the objects that the pods of a gang need: their groups, and the objects that these own.
func (r *Reconciler) applyGang(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan, jobSet *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	needed, reader := mayApplyJobSet(job, jobSet), client.Reader(r.Client)
	if needed {
		// This apply starts pods. A cache that still shows the group from before a suspension would let them start
		// without one.
		reader = r.Live
	}
	if waiting, err = r.ensureGroups(ctx, reader, job, withAttempt(planned, jobSet)); err != nil || waiting {
		return waiting, err
	}
	if waiting, err = r.ensureDomain(ctx, reader, job, planned); err != nil || waiting || !needed {
		return waiting, err
	}
	return r.ensureClaims(ctx, job, planned)
}

// mayApplyJobSet reports whether the planned JobSet may be applied: not over one that runs, unless the job is
// suspended.
func mayApplyJobSet(job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet) bool {
	return suspended(job) || !runs(jobSet)
}

// applyPods applies the objects that the pods of a job need before they start, and the JobSet that creates them.
func (r *Reconciler) applyPods(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, jobSet *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	if err := r.applyFiles(ctx, job, planned.Plan, jobSet); err != nil {
		return false, err
	}
	// The foreign group is read live, and for a suspended job only when another rendering or a start is due.
	if !suspended(job) || jobSet == nil || !planned.recorded() {
		if err := r.applyForeign(ctx, job, planned.Plan); err != nil {
			return false, err
		}
	}
	if waiting, err = r.applyOrReplace(ctx, job, planned, jobSet); err != nil || waiting {
		return waiting, err
	}
	return false, r.record(ctx, planned)
}

// updateAnnotations sets our planned annotations, and removes those that are no longer planned.
func (r *Reconciler) updateAnnotations(ctx context.Context, have, want client.Object) error {
	old, next := have.GetAnnotations(), maps.Clone(have.GetAnnotations())
	if next == nil {
		next = map[string]string{}
	}
	planned := maps.Clone(want.GetAnnotations())
	const end = topology.AnnotationExpectedEnd
	if told := old[end]; told != "" && plan.SameEnd(told, planned[end], r.Clock.Now()) {
		planned[end] = told
	}
	maps.DeleteFunc(next, func(key, _ string) bool {
		_, ok := planned[key]
		return plan.IsPlanned(key) && !ok
	})
	maps.Copy(next, planned)
	if maps.Equal(old, next) {
		return nil
	}
	base, ok := have.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying %s: not an API object", describe(want))
	}
	have.SetAnnotations(next)
	if err := r.Client.Patch(ctx, have, client.MergeFrom(base), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("annotating %s: %w", describe(want), err)
	}
	return nil
}

func (r *Reconciler) applyObject(ctx context.Context, object client.Object) error {
	content, err := plan.Applicable(object)
	if err != nil {
		return err
	}
	return r.applyUnstructured(ctx, content)
}

func (r *Reconciler) applyUnstructured(ctx context.Context, content *unstructured.Unstructured) error {
	dropEmptyMetadata(content.Object)
	err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(content),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s: %w", describe(content), err)
	}
	return nil
}

// jobSet reads the job's JobSet; nil if there is none. One that belongs to another object is an error.
func (r *Reconciler) jobSet(ctx context.Context, job *trainerv1alpha1.TrainJob) (*jobsetv1alpha2.JobSet, error) {
	var found jobsetv1alpha2.JobSet
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), &found); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // absence is a normal answer
		}
		return nil, fmt.Errorf("getting JobSet %s: %w", client.ObjectKeyFromObject(job), err)
	}
	if !owns(job, &found) {
		return nil, fmt.Errorf("JobSet %s: %w", client.ObjectKeyFromObject(job), ErrForeign)
	}
	return &found, nil
}

// owns reports whether the job is the controller of an object.
func owns(job *trainerv1alpha1.TrainJob, object client.Object) bool {
	return ownership.Controls(job, plan.TrainJobKind(), object)
}

func describe(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return strings.TrimSpace(kind + " " + client.ObjectKeyFromObject(object).String())
}

func suspended(job *trainerv1alpha1.TrainJob) bool { return isTrue(job.Spec.Suspend) }

func isTrue(value *bool) bool { return value != nil && *value }
