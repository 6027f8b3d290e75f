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
)

// PatchesChanged reports whether the runtime patches mean something else, or were stamped anew.
func PatchesChanged(old, next *trainerv1alpha1.TrainJob) bool {
	return !equality.Semantic.DeepEqual(old.Spec.RuntimePatches, next.Spec.RuntimePatches)
}

// CheckPatchesChange refuses a change of the runtime patches of a job that runs: it would have no effect until the job is
// suspended, and nobody would tell. jobs are the status of the job's JobSet, empty if there is none.
func CheckPatchesChange(
	old, next *trainerv1alpha1.TrainJob, jobs []jobsetv1alpha2.ReplicatedJobStatus,
) field.ErrorList {
	if !PatchesChanged(old, next) {
		return nil
	}
	var faults field.ErrorList
	if !ptr.Deref(old.Spec.Suspend, false) && !ptr.Deref(next.Spec.Suspend, false) {
		faults = append(faults, field.Forbidden(patchesPath(),
			"RuntimePatches can only be modified when the TrainJob is suspended before or after the update"))
	}
	for _, job := range jobs {
		if job.Active > 0 {
			faults = append(faults, field.Forbidden(patchesPath(), fmt.Sprintf(
				"RuntimePatches cannot be modified when the JobSet's ReplicatedJob %s is still active", job.Name)))
		}
	}
	return faults
}

// checkPatchesChange reads the JobSet only when the patches change.
func (v *Validator) checkPatchesChange(ctx context.Context, old, next *trainerv1alpha1.TrainJob) field.ErrorList {
	if !PatchesChanged(old, next) {
		return nil
	}
	var jobSet jobsetv1alpha2.JobSet
	if err := v.JobSets.Get(ctx, client.ObjectKeyFromObject(next), &jobSet); client.IgnoreNotFound(err) != nil {
		return field.ErrorList{field.InternalError(patchesPath(), fmt.Errorf("getting JobSet %s: %w", next.Name, err))}
	}
	return CheckPatchesChange(old, next, jobSet.Status.ReplicatedJobsStatus)
}

func patchesPath() *field.Path { return field.NewPath("spec", "runtimePatches") }
