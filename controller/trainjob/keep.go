package trainjob

import (
	"context"
	"errors"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// reasonKept is the reason of the Event for a JobSet that is not replaced, and continues unchanged.
const reasonKept = "JobSetKept"

// errKeepsVolumes indicates that a JobSet cannot continue unchanged, and that the data of its pods would be deleted
// with it.
var errKeepsVolumes = errors.New(
	"the job has another size than its JobSet, whose volume claims would be deleted with it; " +
		"undo the change of the size, or create the job again",
)

// keep applies the mutable fields to a suspended JobSet that must not be replaced, and leaves the rest as it was
// created, like a running JobSet. refusal is the API server's answer to the whole plan. One of another size would wait
// in a group for pods that its JobSet does not create, so it stays suspended.
func (r *Reconciler) keep(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, there *jobsetv1alpha2.JobSet, refusal error,
) error {
	if !plan.SameSize(planned.JobSet, there) {
		return errors.Join(errKeepsVolumes, refusal)
	}
	asked, before, err := bothContents(planned.JobSet, there)
	if err != nil {
		return err
	}
	now, err := markOf(asked, "")
	if err != nil {
		return err
	}
	content, err := jobSetContent(plan.Adjusted(planned.JobSet, there), there)
	if err != nil {
		return err
	}
	if err := r.applyUnstructured(ctx, content); err != nil {
		return errors.Join(err, refusal)
	}
	// The plan is not applied again until it or the JobSet changes.
	now.version = strconv.FormatInt(content.GetGeneration(), 10)
	r.applied.remember(there.UID, now)
	if !planned.recorded() {
		fields := requested(desired(before), desired(asked.Object))
		r.Recorder.Eventf(
			job,
			corev1.EventTypeNormal,
			reasonKept,
			"%s",
			shorten(
				"The suspended JobSet goes on as it was created, because its volume claims would be deleted with it; differs at "+
					strings.Join(
						fields,
						", ",
					),
			),
		)
	}
	return nil
}
