package trainjob

import (
	"context"
	"fmt"
	"math"
	"strconv"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

const (
	// GroupIndex is the index under which PodGroups are found by the name of their TrainJob.
	GroupIndex = "lockstep.dev/trainjob"
	// attemptLabel on a group with shared claims is the start of the JobSet for which it was created, as on JobSet's
	// own Jobs: 0 for the first.
	attemptLabel = "jobset.sigs.k8s.io/restart-attempt"
)

// IndexByJob is the value of a PodGroup under GroupIndex.
func IndexByJob(object client.Object) []string {
	owner := ownership.ControllerOf(object, plan.TrainJobKind())
	if owner == nil {
		return nil
	}
	return []string{owner.Name}
}

// ensureGroups creates the Workload and then the PodGroups where they are absent. Existing groups are immutable except
// for the annotations, which follow the plan.
func (r *Reconciler) ensureGroups(
	ctx context.Context, reader client.Reader, job *trainerv1alpha1.TrainJob, planned plan.Plan,
) (waiting bool, err error) {
	var wanted []client.Object
	if planned.Workload != nil {
		wanted = append(wanted, planned.Workload)
	}
	for _, group := range planned.PodGroups {
		wanted = append(wanted, group)
	}
	for _, want := range wanted {
		have := blank(want)
		switch err = reader.Get(ctx, client.ObjectKeyFromObject(want), have); {
		case apierrors.IsNotFound(err):
			if err = r.applyObject(ctx, want); err != nil {
				return false, err
			}
		case err != nil:
			return false, fmt.Errorf("getting %s: %w", describe(want), err)
		case !owns(job, have):
			return false, fmt.Errorf("%s: %w", describe(want), ErrForeign)
		case !have.GetDeletionTimestamp().IsZero():
			return true, nil
		default:
			if err = r.updateAnnotations(ctx, have, want); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// withAttempt is the plan with the start of the JobSet on the groups for which it matters.
func withAttempt(planned plan.Plan, jobSet *jobsetv1alpha2.JobSet) plan.Plan {
	attempt := int32(0)
	if jobSet != nil {
		attempt = jobSet.Status.Restarts
	}
	groups := make([]*schedulingv1beta1.PodGroup, len(planned.PodGroups))
	for i, group := range planned.PodGroups {
		groups[i] = group
		if shares(group) {
			groups[i] = group.DeepCopy()
			if groups[i].Labels == nil {
				groups[i].Labels = make(map[string]string, 1)
			}
			groups[i].Labels[attemptLabel] = strconv.Itoa(int(attempt))
		}
	}
	planned.PodGroups = groups
	return planned
}

// removeOutdatedGroups deletes the groups with shared claims whose JobSet has restarted since they were created, and
// reports whether any still exists. The devices of such a claim stay allocated for as long as its group exists, and
// bind its pods to their nodes: a gang that lost a device or a node would wait for it for ever. As for a suspension,
// the pods are deleted first; after the groups, the gang is created anew.
func (r *Reconciler) removeOutdatedGroups(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan, jobSet *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	if suspended(job) || jobSet == nil || jobSet.Status.TerminalState != "" || restartsInPlace(jobSet) {
		return false, nil
	}
	for _, want := range planned.PodGroups {
		if !shares(want) {
			continue
		}
		have := &schedulingv1beta1.PodGroup{}
		outdated, err := r.outdated(ctx, want, jobSet, have)
		if err != nil {
			return false, err
		}
		if !outdated || !owns(job, have) {
			continue
		}
		waiting = true
		if runs(jobSet) {
			if jobSet, err = r.stop(ctx, jobSet); err != nil {
				return false, err
			}
		}
		if err := r.remove(ctx, job, have); err != nil {
			return false, err
		}
	}
	return waiting, nil
}

// outdated reads the group of that name, and reports whether it was made for an earlier start of the JobSet. A live
// read confirms the cache: a cache that shows an earlier group would stop a gang that was just created anew.
func (r *Reconciler) outdated(
	ctx context.Context,
	want *schedulingv1beta1.PodGroup,
	jobSet *jobsetv1alpha2.JobSet,
	have *schedulingv1beta1.PodGroup,
) (bool, error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		err := reader.Get(ctx, client.ObjectKeyFromObject(want), have)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("getting %s: %w", describe(want), err)
		}
		if attemptOf(have) >= jobSet.Status.Restarts {
			return false, nil
		}
	}
	return true, nil
}

// attemptOf returns the start of the JobSet for which a group or a Job was created. An object without the label is
// never too early.
func attemptOf(object client.Object) int32 {
	attempt, err := strconv.ParseInt(object.GetLabels()[attemptLabel], 10, 32)
	if err != nil {
		return math.MaxInt32
	}
	return int32(attempt)
}

// restartsInPlace reports whether a JobSet's pods outlive its restarts: they stay on their nodes, and so have the same
// devices.
func restartsInPlace(jobSet *jobsetv1alpha2.JobSet) bool {
	policy := jobSet.Spec.FailurePolicy
	return policy != nil && policy.RestartStrategy == jobsetv1alpha2.InPlaceRestart
}

// shares reports whether the pods of a group share claims.
func shares(group *schedulingv1beta1.PodGroup) bool { return len(group.Spec.ResourceClaims) > 0 }

// gangObjects returns the existing PodGroups and Workload of a job, whatever its present plan.
func (r *Reconciler) gangObjects(ctx context.Context, job *trainerv1alpha1.TrainJob) ([]client.Object, error) {
	var groups schedulingv1beta1.PodGroupList
	err := r.Client.List(ctx, &groups, client.InNamespace(job.Namespace), client.MatchingFields{GroupIndex: job.Name})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the PodGroups of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	var objects []client.Object
	for i := range groups.Items {
		objects = append(objects, &groups.Items[i])
	}
	if r.Options.GangAPI == gangapi.Resources {
		return objects, nil
	}
	workload := &schedulingv1beta1.Workload{}
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(job), workload)
	if apierrors.IsNotFound(err) {
		return objects, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting the Workload of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return append(objects, workload), nil
}

// blank is an empty object of the same type.
func blank(object client.Object) client.Object {
	if _, ok := object.(*schedulingv1beta1.Workload); ok {
		return &schedulingv1beta1.Workload{}
	}
	return &schedulingv1beta1.PodGroup{}
}
