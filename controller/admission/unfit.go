package admission

import (
	"context"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// unfitLater is unfit for a job that changes while it is suspended: it is rendered anew when it is resumed.
func (v *Validator) unfitLater(ctx context.Context, job *trainerv1alpha1.TrainJob, found resolve.Found) []string {
	if job.Spec.Suspend == nil || !*job.Spec.Suspend {
		return nil
	}
	planned, err := plan.New(job, found.Runtime, found.Options(v.Options))
	if err != nil {
		return nil // it is refused, or was at fault before
	}
	return v.unfit(ctx, planned.JobSet)
}

// unfit warns of pods that no node holds: most likely a name is misspelled, or the device plugin is not installed. It is no refusal, because such a node
// may come.
func (v *Validator) unfit(ctx context.Context, jobSet *jobsetv1alpha2.JobSet) []string {
	warnings := v.Nodes.Unfit(ctx, jobSet)
	for i := range warnings {
		warnings[i] += "; the job waits until one does"
	}
	return warnings
}
