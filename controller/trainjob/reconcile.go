package trainjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/instruments"
	"github.com/lockstep-project/lockstep/controller/nodefit"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/podsecurity"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// Reconciler makes TrainJobs real. All exported fields but Class are required.
type Reconciler struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Live reads past the cache, where a stale answer would start pods without their group.
	Live client.Reader
	// Resolver finds the jobs' runtimes.
	Resolver *resolve.Resolver
	// Recorder writes Events about TrainJobs, in the older form: Kubeflow's SDK drops those without firstTimestamp, which the newer API
	// cannot say.
	Recorder record.EventRecorder
	// Clock tells the time against which deadlines are held.
	Clock clock.PassiveClock
	// Instruments count what happened.
	Instruments *instruments.Controller
	// Options are handed to the planner.
	Options plan.Options
	// Class are the jobs for which this controller is responsible.
	Class class.Class
	// Nodes finds pods that no node can hold. Those of gangs may be held back.
	Nodes nodefit.Nodes
	// Levels finds pods that their namespace does not let in.
	Levels podsecurity.Levels
	// Authority is what clients of the status server have to trust, as PEM, as it is by then; empty while it is not known.
	// Nil without a status server, and only then.
	Authority func() string

	applied   applied
	reminders reminders
	reports   reports
}

// waitForCache is how long to wait for a cache that showed an older job than there is, if the watch is not sooner.
const waitForCache = time.Second

// outcome is what one reconciliation did, for events, metrics and the queue.
type outcome struct {
	began     time.Time
	framework string
	// awaits names what has to happen before the plan is applied; empty if it was applied.
	awaits string
	// notes are for the job's owner; only when its JobSet was made.
	notes []string
	// chosen tells the job's owner the arithmetic of automatic resources; empty unless its JobSet was made.
	chosen string
	// unfit is why no node holds pods of a gang that is to start; empty if some do, or nothing is known.
	unfit string
	// again is when to look again whatever happens; zero for never.
	again time.Duration
	err   error
}

// Reconcile brings one TrainJob a step further. It writes the status at most once, and Events only after that.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job trainerv1alpha1.TrainJob
	err := r.Client.Get(ctx, request.NamespacedName, &job)
	switch {
	case apierrors.IsNotFound(err):
		r.reminders.drop(request.NamespacedName)
		return ctrl.Result{}, r.forget(ctx, request.NamespacedName, "")
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("getting TrainJob %s: %w", request, err)
	case !r.Class.Handles(&job) || !job.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	}
	began := r.Clock.Now()
	jobSet, err := r.jobSet(ctx, &job)
	done := outcome{framework: instruments.Unknown, err: err}
	if err == nil && !job.Ended() {
		done = r.realize(ctx, &job, jobSet)
	}
	done.began = began
	next := job.DeepCopy()
	hinders := hindrance(done, jobSet)
	r.suspension(next, hinders)
	done.err = errors.Join(done.err, r.forget(ctx, request.NamespacedName, job.UID))
	copyStatus(next, jobSet)
	left := sooner(r.deadline(next), done.again)
	done.err = errors.Join(done.err, r.situate(ctx, next, jobSet, hinders))
	if err = r.writeStatus(ctx, &job, next); apierrors.IsConflict(err) {
		return r.again(ctx, &job, done), nil
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(done.err, err)
	}
	r.warn(&job, next, done)
	r.count(&job, next, done.framework)
	left = sooner(left, sooner(resizes(next), r.tell(&job, next)))
	if done.err == nil || next.Ended() || jobSet != nil && isTrue(jobSet.Spec.Suspend) {
		stop := r.timed(instruments.PhaseRelease)
		kept, err := r.cleanUp(ctx, next, jobSet)
		stop()
		done.err = errors.Join(done.err, err)
		left = sooner(left, kept)
	}
	return r.report(next, done, left)
}

// cleanUp takes away what the job no longer needs, in the end itself, and returns when to come back; zero if nothing is due.
func (r *Reconciler) cleanUp(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (time.Duration, error) {
	kept, failure := r.release(ctx, job, jobSet)
	files, err := r.tidy(ctx, job, jobSet)
	failure = errors.Join(failure, err)
	itself, err := r.expire(ctx, job)
	return sooner(kept, sooner(files, itself)), errors.Join(failure, err)
}

// realize plans an unfinished job and applies the plan.
func (r *Reconciler) realize(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) outcome {
	done := outcome{framework: instruments.Unknown}
	if suspended(job) && runs(jobSet) {
		// By itself: JobSet's webhook refuses a suspension that comes with another template, and the pods would run on.
		if done.err = r.stop(ctx, jobSet); done.err != nil {
			return done
		}
	}
	planned, err := r.plan(ctx, job, jobSet)
	switch {
	case errors.Is(err, errNoAuthority):
		done.awaits = err.Error()
	case err == nil:
		done.framework = planned.Framework
		if done.unfit = r.unfit(ctx, job, planned.Plan, jobSet); done.unfit != "" && r.Nodes.Complete {
			done.awaits = heldBack(done.unfit)
			return done
		}
		var waiting bool
		waiting, done.err = r.makeReal(ctx, job, planned, jobSet)
		switch {
		case done.err != nil:
		case waiting:
			done.awaits = "a PodGroup, claim, ComputeDomain or JobSet of its last start has not gone yet"
		default:
			if jobSet == nil {
				done.notes, done.chosen = slices.Concat(planned.Notes, planned.Warnings), planned.Chosen
			}
			done.again, done.err = r.remainder(ctx, planned.Plan, jobSet)
		}
	case suspended(job) || !runs(jobSet):
		done.err = err
	default:
		// The job runs, and nothing would be applied: what became of its runtime since is no concern of its.
		klog.FromContext(ctx).V(2).Info("Left a running job alone", "trainJob", klog.KObj(job), "reason", err.Error())
	}
	return done
}

// makeReal applies a plan, and measures how long it took, and how long the job's user has waited for it.
func (r *Reconciler) makeReal(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, jobSet *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	defer r.timed(instruments.PhaseApply)()
	if waiting, err = r.renew(ctx, job, planned.Plan, jobSet); err != nil || waiting {
		return waiting, err
	}
	waiting, err = r.apply(ctx, job, planned, jobSet)
	if err == nil && !waiting && jobSet == nil {
		r.Instruments.JobSetMade(job.UID, counted(job, planned.Framework), r.Clock.Since(job.CreationTimestamp.Time))
	}
	return waiting, err
}

// again leaves a job alone whose status could not be written because it is not as it was seen. Nothing was released and
// nothing is counted: that is for who sees it as it is.
func (r *Reconciler) again(ctx context.Context, job *trainerv1alpha1.TrainJob, done outcome) ctrl.Result {
	klog.FromContext(ctx).V(2).Info("Saw an older TrainJob than there is", "trainJob", klog.KObj(job))
	r.Instruments.Reconciled(done.framework, instruments.ResultStale, r.Clock.Since(done.began))
	return ctrl.Result{RequeueAfter: waitForCache}
}

// writeStatus writes what changed in the status, if anything did. It is a conflict if the job is not as it was seen any more: a
// cache that is behind would write what is no longer so, and take back a verdict that is final.
func (r *Reconciler) writeStatus(ctx context.Context, old, next *trainerv1alpha1.TrainJob) error {
	if equality.Semantic.DeepEqual(old.Status, next.Status) {
		return nil
	}
	defer r.timed(instruments.PhaseStatus)()
	seen := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, next, seen); err != nil {
		return fmt.Errorf("writing the status of TrainJob %s: %w", client.ObjectKeyFromObject(old), err)
	}
	return nil
}
