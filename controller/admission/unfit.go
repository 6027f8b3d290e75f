package admission

import (
	"context"
	"maps"
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// unfitLater is unfit for a job that changes while it is suspended: it is rendered anew when it is resumed.
func (v *Validator) unfitLater(ctx context.Context, job *trainerv1alpha1.TrainJob, draft *plan.Draft) []string {
	if job.Spec.Suspend == nil || !*job.Spec.Suspend {
		return nil
	}
	planned, err := draft.Render()
	if err != nil {
		return nil // it is refused, or was at fault before
	}
	return slices.Concat(v.unfit(ctx, planned.JobSet), v.refused(ctx, job.Namespace, planned.JobSet))
}

// refused warns of pods that the namespace refuses. It is no refusal, because the namespace may change.
func (v *Validator) refused(ctx context.Context, namespace string, jobSet *jobsetv1alpha2.JobSet) []string {
	refused := v.Levels.Refused(ctx, namespace, jobSet)
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		warnings = append(warnings, refused[name])
	}
	return warnings
}

// unfit warns of pods that no node holds: most likely a name is misspelled, or the device plugin is not installed. It
// is no refusal, because such a node may be added.
func (v *Validator) unfit(ctx context.Context, jobSet *jobsetv1alpha2.JobSet) []string {
	warnings := v.Nodes.Unfit(ctx, jobSet)
	for i := range warnings {
		warnings[i] += "; the job waits until one does"
	}
	return warnings
}
