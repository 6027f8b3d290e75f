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

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/instruments"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// FrozenIndex is the index under which FrozenTrainJobs are found by their TrainJob, as namespace/name.
const FrozenIndex = "lockstep.dev/frozen"

// reasonDisbelieved is the reason of the Event about a copy of a runtime that no controller can have made.
const reasonDisbelieved = "RuntimeCopyRefused"

// errNoAuthority indicates that the job's pods would wait for a ConfigMap that cannot be made yet.
var errNoAuthority = errors.New("the authority of the status server is not known yet")

// frozenPlan is the plan of a job and the frozen state by which it was made.
type frozenPlan struct {
	plan.Plan

	state *statev1alpha1.FrozenTrainJob
}

// IndexFrozen is the value of a FrozenTrainJob under FrozenIndex.
func IndexFrozen(object client.Object) []string {
	state, ok := object.(*statev1alpha1.FrozenTrainJob)
	if !ok {
		return nil
	}
	return []string{jobOf(state).String()}
}

// jobOf is the key of the TrainJob whose state this is.
func jobOf(state *statev1alpha1.FrozenTrainJob) types.NamespacedName {
	return types.NamespacedName{Namespace: state.Spec.TrainJob.Namespace, Name: state.Spec.TrainJob.Name}
}

// plan renders the job, and freezes the first time what it was rendered with: the runtime, and the decisions of the
// controller. Until then a runtime may be mended, and the job follows. The error is errNoAuthority, a fault of the job's or of
// its runtime's, or one of the API server's.
func (r *Reconciler) plan(ctx context.Context, job *trainerv1alpha1.TrainJob) (frozenPlan, error) {
	defer r.timed(instruments.PhasePlan)()
	found, err := r.Resolver.Find(ctx, job)
	if err != nil {
		return frozenPlan{}, fmt.Errorf("finding the runtime: %w", err)
	}
	options := r.options(found)
	if r.awaitsAuthority(options) {
		return frozenPlan{}, errNoAuthority
	}
	planned, err := plan.New(job, found.Runtime, options)
	if err != nil {
		return frozenPlan{}, fmt.Errorf("planning: %w", err)
	}
	if found.Frozen != nil {
		return frozenPlan{planned, found.Frozen}, nil
	}
	state, err := r.freeze(ctx, job, found, options, planned)
	return frozenPlan{planned, state}, err
}

// freeze creates the frozen state of a job, before any other object of the job: a JobSet without frozen state was rendered by an
// earlier version.
func (r *Reconciler) freeze(
	ctx context.Context, job *trainerv1alpha1.TrainJob, found resolve.Found, options plan.Options, planned plan.Plan,
) (*statev1alpha1.FrozenTrainJob, error) {
	state, err := r.Resolver.Freeze(job, found, options, planned)
	if err != nil {
		return nil, err
	}
	if found.Decisions != nil {
		state.Spec.Rendering.Digest = "" // another version has rendered the JobSet that is there
	}
	if err := r.Client.Create(ctx, state, client.FieldOwner(fieldManager)); err != nil {
		return nil, fmt.Errorf("freezing the runtime of TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	if found.Disbelieved != "" {
		r.Recorder.Eventf(job, nil, corev1.EventTypeWarning, reasonDisbelieved, "Reconciling",
			"ConfigMap %s is not believed to be the job's copy of its runtime: %s; the runtime as it is now counts",
			resolve.CopyName(job), found.Disbelieved)
	}
	r.publish(ctx, job, state)
	if found.Decisions == nil {
		r.Instruments.Created(job.UID, counted(job, planned.Framework))
	}
	return state, nil
}

// publish creates the copy of the frozen runtime that users read. Nothing depends on it: an object that already has its name
// stays, and the job starts without it.
func (r *Reconciler) publish(
	ctx context.Context, job *trainerv1alpha1.TrainJob, state *statev1alpha1.FrozenTrainJob,
) {
	config, err := resolve.Copy(job, state)
	if err == nil {
		err = r.Client.Create(ctx, config, client.FieldOwner(fieldManager))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		klog.FromContext(ctx).Error(err, "No copy of the runtime is made", "trainJob", klog.KObj(job))
	}
}

// record updates the rendering in the frozen state after another JobSet was applied.
func (r *Reconciler) record(ctx context.Context, planned frozenPlan) error {
	rendering, err := planned.Rendering()
	if err != nil || planned.state.Spec.Rendering == rendering {
		return err
	}
	next := planned.state.DeepCopy()
	next.Spec.Rendering = rendering
	if err := r.Client.Patch(ctx, next, client.MergeFrom(planned.state), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("recording the rendering of TrainJob %s: %w", jobOf(planned.state), err)
	}
	return nil
}

// forget deletes the frozen state of earlier TrainJobs of this name: of all but the one with UID keep, or of all if keep is
// empty. Owner references do not cross namespaces, so the garbage collector cannot.
func (r *Reconciler) forget(ctx context.Context, name types.NamespacedName, keep types.UID) error {
	var states statev1alpha1.FrozenTrainJobList
	if err := r.Client.List(ctx, &states, client.MatchingFields{FrozenIndex: name.String()}); err != nil {
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
			if err := r.erase(ctx, state); err != nil {
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

// enqueueFrozen requeues the job of a FrozenTrainJob. A job that no longer exists is requeued too: its state is deleted then.
func enqueueFrozen() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		state, ok := object.(*statev1alpha1.FrozenTrainJob)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: jobOf(state)}}
	})
}
