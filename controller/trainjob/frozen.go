package trainjob

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// FrozenIndex is the index under which FrozenTrainJobs are found by their TrainJob, as namespace/name.
const FrozenIndex = "lockstep.dev/frozen"

// reasonDisbelieved is the reason of the Event about a copy of a runtime that no controller can have made.
const reasonDisbelieved = "RuntimeCopyRefused"

// errNoAuthority indicates that the job's pods would wait for a ConfigMap that cannot be made yet.
var errNoAuthority = errors.New("the authority of the status server is not known yet")

// frozenPlan is the plan of a job, the frozen state by which it was made, and its JobSet's rendering, which is empty
// where the JobSet is not applied.
type frozenPlan struct {
	plan.Plan

	state     *statev1alpha1.FrozenTrainJob
	rendering statev1alpha1.Rendering
}

// IndexFrozen is the value of a FrozenTrainJob under FrozenIndex.
func IndexFrozen(object client.Object) []string {
	state, ok := object.(*statev1alpha1.FrozenTrainJob)
	if !ok {
		return nil
	}
	return []string{jobOf(state).String()}
}

// jobOf returns the key of the TrainJob that has this state.
func jobOf(state *statev1alpha1.FrozenTrainJob) types.NamespacedName {
	return types.NamespacedName{Namespace: state.Spec.TrainJob.Namespace, Name: state.Spec.TrainJob.Name}
}

// plan renders the job, and freezes the inputs of its first rendering: the runtime, and the decisions of the
// controller. Until then a change of the runtime applies to the job. The error is errNoAuthority, a fault of the job's
// or of its runtime's, or one of the API server's.
func (r *Reconciler) plan(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (frozenPlan, error) {
	defer r.timed(metrics.PhasePlan)()
	made, err := r.render(ctx, job, jobSet)
	if err != nil {
		return frozenPlan{}, err
	}
	// Each report of a running job is planned, too, and its JobSet need not be printed for that.
	var rendering statev1alpha1.Rendering
	if mayApplyJobSet(job, jobSet) {
		if rendering, err = made.Rendering(); err != nil {
			return frozenPlan{}, fmt.Errorf("planning: %w", err)
		}
	}
	if made.found.Frozen != nil {
		state, err := r.recordSecrets(ctx, made.found.Frozen, made.options.Decide(made.Plan))
		return frozenPlan{made.Plan, state, rendering}, err
	}
	state, err := r.freeze(ctx, job, made.found, made.options, made.Plan)
	return frozenPlan{made.Plan, state, rendering}, err
}

// rendered is a plan with its inputs.
type rendered struct {
	plan.Plan

	found   resolve.Found
	options plan.Options
}

// render plans a job and writes nothing. A job that runs is planned within its JobSet, whichever controller made that,
// and so is one whose JobSet is not replaced.
func (r *Reconciler) render(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (rendered, error) {
	found, err := r.Resolver.Find(ctx, job)
	if err != nil {
		return rendered{}, fmt.Errorf("finding the runtime: %w", err)
	}
	options := r.options(found)
	options.Now = r.Clock.Now()
	options.ReportedEnd = r.reports.end(job, options.Now)
	if options.SecretSuffix == "" && jobSet == nil {
		// Pods of an existing JobSet mount Secrets by the names in it, also fixed ones of an earlier version.
		options.SecretSuffix = newSecretSuffix()
	}
	if r.awaitsAuthority(options) {
		return rendered{}, errNoAuthority
	}
	planned, err := plan.New(job, found.Runtime, options)
	if err != nil {
		return rendered{}, fmt.Errorf("planning: %w", err)
	}
	if runs(jobSet) || plan.LosesVolumes(jobSet) {
		planned = planned.Within(jobSet)
	}
	return rendered{planned, found, options}, nil
}

// freeze creates the frozen state of a job, before any other object of the job: a JobSet without frozen state was
// rendered by an earlier version.
func (r *Reconciler) freeze(
	ctx context.Context, job *trainerv1alpha1.TrainJob, found resolve.Found, options plan.Options, planned plan.Plan,
) (*statev1alpha1.FrozenTrainJob, error) {
	state, err := r.Resolver.Freeze(job, found, options, planned)
	if err != nil {
		return nil, err
	}
	if found.Adopted {
		state.Spec.Rendering.Digest = "" // another version or controller has rendered the JobSet that is there
	}
	err = r.Client.Create(ctx, state, client.FieldOwner(fieldManager))
	if IsTooLarge(err) {
		return nil, tooLarge(found.Runtime.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("freezing the runtime of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	if found.Disbelieved != "" {
		r.Recorder.Eventf(job, corev1.EventTypeWarning, reasonDisbelieved,
			"Ignoring ConfigMap %s as a copy of the job's runtime: %s; the current runtime counts",
			resolve.CopyName(job), found.Disbelieved)
	}
	r.publish(ctx, job, state)
	if !found.Adopted {
		r.Metrics.Created(job.UID, counted(job, planned.Framework))
	}
	return state, nil
}

// recordSecrets records the end of the names of the job's Secrets before they are created. Only a job that an earlier
// version has frozen, and that has no JobSet any more, gets one later than the rest of its state.
func (r *Reconciler) recordSecrets(
	ctx context.Context, state *statev1alpha1.FrozenTrainJob, decided statev1alpha1.Decisions,
) (*statev1alpha1.FrozenTrainJob, error) {
	if decided.SecretSuffix == "" || state.Spec.Decisions.SecretSuffix != "" {
		return state, nil
	}
	next := state.DeepCopy()
	next.Spec.Decisions.SecretSuffix = decided.SecretSuffix
	// A cache that lags may show the state of before another suffix was recorded, which the pods may already mount by.
	seen := client.MergeFromWithOptions(state, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, next, seen, client.FieldOwner(fieldManager)); err != nil {
		return nil, fmt.Errorf("recording the names of the Secrets of TrainJob %s: %w", jobOf(state), err)
	}
	return next, nil
}

// publish creates the copy of the frozen runtime that users read. Nothing depends on it: an object that already has its
// name stays, and the job starts without it.
func (r *Reconciler) publish(
	ctx context.Context, job *trainerv1alpha1.TrainJob, state *statev1alpha1.FrozenTrainJob,
) {
	config, err := resolve.Copy(job, state)
	if err == nil {
		err = r.Client.Create(ctx, config, client.FieldOwner(fieldManager))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		klog.FromContext(ctx).Error(err, "Failed to create the copy of the runtime", "trainJob", klog.KObj(job))
	}
}

// record updates the rendering in the frozen state after another JobSet was applied.
func (r *Reconciler) record(ctx context.Context, planned frozenPlan) error {
	if planned.state.Spec.Rendering == planned.rendering {
		return nil
	}
	return r.recordRendering(ctx, planned.state, planned.rendering)
}

// recordRendering writes a rendering into frozen state.
func (r *Reconciler) recordRendering(
	ctx context.Context, state *statev1alpha1.FrozenTrainJob, rendering statev1alpha1.Rendering,
) error {
	next := state.DeepCopy()
	next.Spec.Rendering = rendering
	if err := r.Client.Patch(ctx, next, client.MergeFrom(state), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("recording the rendering of TrainJob %s: %w", jobOf(state), err)
	}
	return nil
}

// forget deletes the frozen state of earlier TrainJobs of this name: of all but the one with UID keep, or of all if
// keep is empty. Owner references do not cross namespaces, so the garbage collector cannot.
func (r *Reconciler) forget(ctx context.Context, name types.NamespacedName, keep types.UID) error {
	var states statev1alpha1.FrozenTrainJobList
	err := r.Client.List(ctx, &states, client.MatchingFields{FrozenIndex: name.String()},
		client.UnsafeDisableDeepCopy) // they are only read, and each holds a runtime
	if err != nil {
		return fmt.Errorf("listing the frozen state of TrainJob %s: %w", name, err)
	}
	for i := range states.Items {
		state := &states.Items[i]
		of := state.Spec.TrainJob.UID
		if of == keep && keep != "" {
			continue
		}
		// A cache that was filled before the job was created does not show it yet.
		gone, err := r.isGone(ctx, name, of)
		if err != nil {
			return err
		}
		if gone {
			if err := r.erase(ctx, state.DeepCopy()); err != nil {
				return err
			}
		}
	}
	return nil
}

// isGone reports whether there is no TrainJob of that name with that UID any more.
func (r *Reconciler) isGone(ctx context.Context, name types.NamespacedName, uid types.UID) (bool, error) {
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(plan.TrainJobKind())
	err := r.Live.Get(ctx, name, job)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting TrainJob %s: %w", name, err)
	}
	return job.UID != uid, nil
}

// enqueueFrozen requeues the job of a FrozenTrainJob. A job that no longer exists is requeued too: its state is deleted
// then. State of a namespace that this controller no longer serves stays for the controller that does.
func (r *Reconciler) enqueueFrozen() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		state, ok := object.(*statev1alpha1.FrozenTrainJob)
		if !ok || !r.Class.Serves(jobOf(state).Namespace) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: jobOf(state)}}
	})
}
