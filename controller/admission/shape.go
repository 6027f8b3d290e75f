package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// PatchesChanged reports whether the runtime patches mean something else, or were stamped anew.
func PatchesChanged(old, next *trainerv1alpha1.TrainJob) bool {
	return !equality.Semantic.DeepEqual(old.Spec.RuntimePatches, next.Spec.RuntimePatches)
}

// sizeChanged reports whether the number or the resources of the nodes differ. The CRD refuses every other change of a trainer.
func sizeChanged(old, next *trainerv1alpha1.TrainJob) bool {
	was, is := old.Spec.Trainer, next.Spec.Trainer
	return was != nil && is != nil && (!ptr.Equal(was.NumNodes, is.NumNodes) ||
		!equality.Semantic.DeepEqual(was.ResourcesPerNode, is.ResourcesPerNode))
}

// shape is a part of a job that may change while the job is suspended.
type shape struct {
	path *field.Path
	// name is the subject of the sentences that refuse a change.
	name string
}

// changedShapes returns the parts that differ between two versions of a job.
func changedShapes(old, next *trainerv1alpha1.TrainJob) []shape {
	var changed []shape
	if PatchesChanged(old, next) {
		changed = append(changed, shape{field.NewPath("spec", "runtimePatches"), "RuntimePatches"})
	}
	if sizeChanged(old, next) {
		changed = append(changed, shape{field.NewPath("spec", "trainer"), "numNodes and resourcesPerNode"})
	}
	if key := topology.AnnotationPriorityClass; old.Annotations[key] != next.Annotations[key] {
		changed = append(changed, shape{field.NewPath("metadata", "annotations").Key(key), "The priority class"})
	}
	return changed
}

// CheckShapeChange refuses a change of the runtime patches, of the trainer's size, or of the priority of a job that runs: it would have no effect until
// the job is suspended, and nobody would tell. jobs is the status of the ReplicatedJobs of the job's JobSet, empty without one.
func CheckShapeChange(
	old, next *trainerv1alpha1.TrainJob, jobs []jobsetv1alpha2.ReplicatedJobStatus,
) field.ErrorList {
	var faults field.ErrorList
	for _, part := range changedShapes(old, next) {
		if !ptr.Deref(old.Spec.Suspend, false) && !ptr.Deref(next.Spec.Suspend, false) {
			faults = append(faults, field.Forbidden(part.path,
				part.name+" can only be modified when the TrainJob is suspended before or after the update"))
		}
		for _, job := range jobs {
			if job.Active > 0 {
				faults = append(faults, field.Forbidden(part.path, fmt.Sprintf(
					"%s cannot be modified when the JobSet's ReplicatedJob %s is still active", part.name, job.Name)))
			}
		}
	}
	return faults
}

// checkShapeChange reads the JobSet only when there is such a change.
func (v *Validator) checkShapeChange(ctx context.Context, old, next *trainerv1alpha1.TrainJob) field.ErrorList {
	changed := changedShapes(old, next)
	if len(changed) == 0 {
		return nil
	}
	var jobSet jobsetv1alpha2.JobSet
	if err := v.JobSets.Get(ctx, client.ObjectKeyFromObject(next), &jobSet); client.IgnoreNotFound(err) != nil {
		return field.ErrorList{
			field.InternalError(changed[0].path, fmt.Errorf("getting JobSet %s: %w", next.Name, err)),
		}
	}
	return CheckShapeChange(old, next, jobSet.Status.ReplicatedJobsStatus)
}
