package trainjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Action is the first thing that a controller does with the JobSet of a TrainJob that it takes over.
type Action string

const (
	// ActionKeep leaves a running JobSet alone until its job is suspended, and the immutable fields of a suspended
	// JobSet with volume claims.
	ActionKeep Action = "keep"
	// ActionNone leaves a finished job alone.
	ActionNone Action = "none"
	// ActionSkip leaves a job to the controller that its managedBy names.
	ActionSkip Action = "skip"
	// ActionUnchanged applies a suspended JobSet without changing it.
	ActionUnchanged Action = "unchanged"
	// ActionPatch changes fields of a suspended JobSet.
	ActionPatch Action = "patch"
	// ActionReplace deletes a suspended JobSet and creates it again, because its changed fields are immutable.
	ActionReplace Action = "replace"
	// ActionCreate creates the JobSet, which does not exist yet.
	ActionCreate Action = "create"
	// ActionBlocked does nothing until the job's owner or an administrator acts.
	ActionBlocked Action = "blocked"
)

// Adoption is the result of a dry run for one TrainJob.
type Adoption struct {
	Action Action `json:"action"`
	// Fields are the paths in the JobSet at which the two controllers differ. Those of a running JobSet differ after a
	// suspension.
	Fields []string `json:"fields,omitempty"`
	// Reason is the cause for which a job is skipped or blocked, or the manual step that it needs.
	Reason string `json:"reason,omitempty"`
}

// PreviewAdoption returns this controller's first action for a job. Client must be a dry-run client: the JobSet is
// applied with it. The error is the API server's.
func (r *Reconciler) PreviewAdoption(ctx context.Context, job *trainerv1alpha1.TrainJob) (Adoption, error) {
	switch {
	case !r.Class.Handles(job):
		return skipped(job), nil
	case job.Ended():
		return Adoption{Action: ActionNone}, nil
	}
	jobSet, err := r.jobSet(ctx, job)
	if errors.Is(err, ErrForeign) {
		return blocked(err), nil
	}
	if err != nil {
		return Adoption{}, err
	}
	planned, err := r.render(ctx, job, jobSet)
	running := runs(jobSet) && !suspended(job)
	switch {
	case err == nil && running:
		return keptJobSet(planned.JobSet, jobSet)
	case err == nil:
		return r.tryJobSet(ctx, planned.JobSet, jobSet)
	case !refusesJob(err):
		return Adoption{}, err
	case running:
		return Adoption{Action: ActionKeep, Reason: "could not start again after a suspension: " + brief(err)}, nil
	default:
		return blocked(err), nil
	}
}

// keptJobSet compares a running JobSet with the planned one.
func keptJobSet(planned, there *jobsetv1alpha2.JobSet) (Adoption, error) {
	content, before, err := bothContents(planned, there)
	if err != nil {
		return Adoption{}, err
	}
	return Adoption{Action: ActionKeep, Fields: requested(desired(before), desired(content.Object))}, nil
}

// tryJobSet applies a planned JobSet with a dry run over the suspended one, if there is one.
func (r *Reconciler) tryJobSet(ctx context.Context, planned, there *jobsetv1alpha2.JobSet) (Adoption, error) {
	content, err := jobSetContent(planned, there)
	if err != nil {
		return Adoption{}, err
	}
	refusal := r.applyUnstructured(ctx, content)
	switch {
	case apierrors.IsInvalid(refusal):
		return refusedJobSet(planned, there, refusal)
	case isVerdict(refusal):
		return blocked(refusal), nil
	case refusal != nil:
		return Adoption{}, refusal
	case r.Options.GangAPI != gangapi.Resources && !keepsGroups(planned, content):
		return blocked(errDropsGroups), nil
	case there == nil:
		return Adoption{Action: ActionCreate}, nil
	}
	_, before, err := bothContents(planned, there)
	if err != nil {
		return Adoption{}, err
	}
	fields := differences(desired(before), desired(content.Object)) // the dry run has replaced content by its result
	if len(fields) == 0 {
		return Adoption{Action: ActionUnchanged}, nil
	}
	return Adoption{Action: ActionPatch, Fields: fields}, nil
}

// errDropsGroups is about JobSet before 0.12, which Kubeflow Trainer 2.2 brings: to Kubernetes, which protects its own
// PodGroups and the claims that they share, the pods would not be a gang. Where PodGroups are custom resources, the
// label suffices.
var errDropsGroups = errors.New("JobSet drops the schedulingGroup of pods here: gangs need JobSet 0.12 or later")

// keepsGroups reports whether the API server stored the field with the pods' groups of a planned JobSet.
func keepsGroups(planned *jobsetv1alpha2.JobSet, made *unstructured.Unstructured) bool {
	var kept jobsetv1alpha2.JobSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, &kept); err != nil {
		return false
	}
	return slices.EqualFunc(planned.Spec.ReplicatedJobs, kept.Spec.ReplicatedJobs,
		func(asked, made jobsetv1alpha2.ReplicatedJob) bool {
			of, in := asked.Template.Spec.Template.Spec, made.Template.Spec.Template.Spec
			return (of.SchedulingGroup == nil) == (in.SchedulingGroup == nil)
		})
}

// isVerdict reports whether an error is the final answer to this request, like that of a policy or of a webhook without
// dry-run support, and not a transient fault.
func isVerdict(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// refusedJobSet returns the action after JobSet's refusal of a dry run.
func refusedJobSet(planned, there *jobsetv1alpha2.JobSet, refusal error) (Adoption, error) {
	switch {
	case there == nil:
		return blocked(refusal), nil
	case plan.LosesVolumes(there) && !plan.SameSize(planned, there):
		return blocked(errKeepsVolumes), nil
	}
	asked, before, err := bothContents(planned, there)
	if err != nil {
		return Adoption{}, err
	}
	fields := requested(desired(before), desired(asked.Object))
	if plan.LosesVolumes(there) {
		return Adoption{
			Action: ActionKeep,
			Fields: fields,
			Reason: "its volume claims would be deleted with its JobSet",
		}, nil
	}
	return Adoption{Action: ActionReplace, Fields: fields}, nil
}

// bothContents returns as JSON the applied fields of a planned JobSet, and the existing JobSet.
func bothContents(
	planned, there *jobsetv1alpha2.JobSet,
) (asked *unstructured.Unstructured, before map[string]any, err error) {
	content, err := jobSetContent(planned, there)
	if err != nil {
		return nil, nil, err
	}
	before, err = runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return nil, nil, fmt.Errorf("converting %s: %w", describe(there), err)
	}
	return content, before, nil
}

// PreviewReturn returns the action that a job needs before Kubeflow Trainer can manage it again. Kubeflow Trainer
// renders JobSets that differ from Lockstep's, and retries for ever where a suspended JobSet does not permit the
// change.
func (r *Reconciler) PreviewReturn(ctx context.Context, job *trainerv1alpha1.TrainJob) (Adoption, error) {
	manager := managerOf(job)
	switch {
	case job.Ended():
		return Adoption{Action: ActionNone}, nil
	case manager == trainerv1alpha1.LockstepManagedBy:
		return Adoption{
			Action: ActionBlocked,
			Reason: "managedBy is " + manager + " for good, which Kubeflow Trainer leaves alone; " +
				"keep Lockstep with --manage=chosen until the job ends, or create it again",
		}, nil
	case !r.Class.Handles(job):
		return skipped(job), nil
	}
	jobSet, err := r.jobSet(ctx, job)
	switch {
	case errors.Is(err, ErrForeign):
		return blocked(err), nil
	case err != nil:
		return Adoption{}, err
	case jobSet == nil:
		return Adoption{Action: ActionCreate}, nil
	case runs(jobSet) && !suspended(job):
		return keptInGroups(jobSet), nil
	case plan.LosesVolumes(jobSet):
		return Adoption{
			Action: ActionBlocked,
			Reason: "its volume claims would be deleted with its JobSet, which Kubeflow Trainer cannot change",
		}, nil
	}
	err = r.Client.Get(ctx, r.Resolver.FrozenKey(job), &statev1alpha1.FrozenTrainJob{})
	if apierrors.IsNotFound(err) {
		return Adoption{Action: ActionUnchanged}, nil // only Kubeflow Trainer has rendered it
	}
	if err != nil {
		return Adoption{}, fmt.Errorf(
			"getting the frozen state of TrainJob %s: %w",
			client.ObjectKeyFromObject(job),
			err,
		)
	}
	return Adoption{
		Action: ActionReplace,
		Reason: fmt.Sprintf("once Lockstep is stopped: kubectl delete jobset -n %s %s", job.Namespace, job.Name),
	}, nil
}

// keptInGroups is the answer for a running JobSet that returns to Kubeflow Trainer.
func keptInGroups(jobSet *jobsetv1alpha2.JobSet) Adoption {
	kept := Adoption{Action: ActionKeep}
	if groups := plan.GroupsOf(jobSet); len(groups) > 0 {
		kept.Reason = "keep lockstep-scheduler until the job ends, for PodGroup " + strings.Join(groups, ", ") +
			"; to suspend it under Kubeflow Trainer, delete its JobSet, too"
	}
	return kept
}

func blocked(err error) Adoption { return Adoption{Action: ActionBlocked, Reason: brief(err)} }

func skipped(job *trainerv1alpha1.TrainJob) Adoption {
	return Adoption{Action: ActionSkip, Reason: "managedBy is " + managerOf(job)}
}

// refusesJob reports whether a job cannot be rendered until it or its runtime changes.
func refusesJob(err error) bool {
	var refusal *plan.RefusalError
	return errors.As(err, &refusal) || errors.Is(err, resolve.ErrMissing) || errors.Is(err, resolve.ErrUnknown) ||
		errors.Is(err, resolve.ErrFrozen)
}

// managerOf returns the managedBy of a job, or its default.
func managerOf(job *trainerv1alpha1.TrainJob) string {
	return ptr.Deref(job.Spec.ManagedBy, trainerv1alpha1.DefaultManagedBy)
}
