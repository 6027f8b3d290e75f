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
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// patchesChanged reports whether the runtime patches have another meaning, or another time.
func patchesChanged(old, next *trainerv1alpha1.TrainJob) bool {
	return !equality.Semantic.DeepEqual(old.Spec.RuntimePatches, next.Spec.RuntimePatches)
}

// sizeChanged reports whether the number or the resources of the nodes differ. The CRD refuses every other change of a
// trainer.
func sizeChanged(old, next *trainerv1alpha1.TrainJob) bool {
	was, is := old.Spec.Trainer, next.Spec.Trainer
	return was != nil && is != nil && (!ptr.Equal(was.NumNodes, is.NumNodes) ||
		!equality.Semantic.DeepEqual(was.ResourcesPerNode, is.ResourcesPerNode))
}

// priorityChanged reports whether a job has another priority class than before: it names one itself, by annotation or
// by a runtime patch, or leaves that to its runtime now. Without a runtime only the job's own class counts.
func priorityChanged(old, next *trainerv1alpha1.TrainJob, runtime plan.Runtime) bool {
	return plan.NamedPriorityClass(old, runtime) != plan.NamedPriorityClass(next, runtime)
}

// shape is a part of a job that may change while the job is suspended.
type shape struct {
	path *field.Path
	// name is the subject of the sentences that refuse a change.
	name string
}

// changedShapes returns the parts that differ between two versions of a job.
func changedShapes(old, next *trainerv1alpha1.TrainJob, runtime plan.Runtime) []shape {
	var changed []shape
	if patchesChanged(old, next) {
		changed = append(changed, shape{field.NewPath("spec", "runtimePatches"), "RuntimePatches"})
	}
	if sizeChanged(old, next) {
		changed = append(changed, shape{field.NewPath("spec", "trainer"), "numNodes and resourcesPerNode"})
	}
	if priorityChanged(old, next, runtime) {
		at := field.NewPath("metadata", "annotations").Key(topology.AnnotationPriorityClass)
		changed = append(changed, shape{at, "The priority class"})
	}
	return changed
}

// refuseShapes refuses changes of parts of a job that runs: they would have no effect until the job is suspended,
// without a report. jobs is the status of the ReplicatedJobs of the job's JobSet, empty without one.
func refuseShapes(
	changed []shape, old, next *trainerv1alpha1.TrainJob, jobs []jobsetv1alpha2.ReplicatedJobStatus,
) field.ErrorList {
	var faults field.ErrorList
	for _, part := range changed {
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

// checkShapeChange refuses a change of the runtime patches, of the trainer's size, or of the priority of a job that
// runs, and of one whose JobSet does not permit the change. It reads the JobSet only when there is such a change.
func (v *Validator) checkShapeChange(
	ctx context.Context, old, next *trainerv1alpha1.TrainJob, runtime plan.Runtime,
) field.ErrorList {
	changed := changedShapes(old, next, runtime)
	if len(changed) == 0 {
		return nil
	}
	var jobSet jobsetv1alpha2.JobSet
	if err := v.JobSets.Get(ctx, client.ObjectKeyFromObject(next), &jobSet); client.IgnoreNotFound(err) != nil {
		return field.ErrorList{
			field.InternalError(changed[0].path, fmt.Errorf("getting JobSet %s: %w", next.Name, err)),
		}
	}
	faults := refuseShapes(changed, old, next, jobSet.Status.ReplicatedJobsStatus)
	return append(faults, v.refuseKept(old, next, runtime, &jobSet)...)
}
