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
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/nodefit"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/podsecurity"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/servedkinds"
)

// Reconciler renders TrainJobs into JobSets and their other objects, and writes their status. The zero values of Class,
// Nodes, Levels, Kinds and Authority are usable; a reconciler that only previews a take-over (see Adopt) needs neither
// Recorder nor Metrics.
type Reconciler struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Live reads past the cache, where a stale answer would start pods without their group.
	Live client.Reader
	// Resolver finds the jobs' runtimes.
	Resolver *resolve.Resolver
	// Recorder writes Events about TrainJobs, in the older form: Kubeflow's SDK drops those without firstTimestamp,
	// which the newer API does not have.
	Recorder record.EventRecorder
	// Clock is the time source of deadlines.
	Clock clock.PassiveClock
	// Metrics are the controller's metrics.
	Metrics *metrics.Controller
	// Options are handed to the planner.
	Options plan.Options
	// Class are the jobs for which this controller is responsible.
	Class class.Class
	// Nodes finds pods that no node can hold. Those of gangs may be held back.
	Nodes nodefit.Nodes
	// Levels finds pods that their namespace's Pod Security level refuses.
	Levels podsecurity.Levels
	// Kinds finds kinds that pods create and that are not served.
	Kinds servedkinds.Kinds
	// Authority returns the current certificates that clients of the status server have to trust, as PEM; empty while
	// they are not known. Nil without a status server, and only then.
	Authority func() string

	applied   applied
	reminders reminders
	reports   reports
}

// waitForCache is the time to wait for a cache that showed an outdated job, if the watch is not sooner.
const waitForCache = time.Second

// outcome is the result of one reconciliation, for events, metrics and the queue.
type outcome struct {
	began     time.Time
	framework string
	// awaits is the condition for applying the plan; empty if it was applied.
	awaits string
	// notes are for the job's owner; set only when its JobSet was created.
	notes []string
	// chosen is the arithmetic of automatic resources, for the job's owner; empty unless its JobSet was created.
	chosen string
	// unfit is the reason for which no node holds pods of a gang that is to start; empty if some do, or nothing is
	// known.
	unfit string
	// requeueAfter is the unconditional requeue delay; zero for never.
	requeueAfter time.Duration
	err          error
}

// Reconcile runs one step for one TrainJob. It writes the status at most once, and Events only after that.
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
	done := outcome{framework: metrics.Unknown, err: err}
	if err == nil && !job.Ended() {
		done = r.planAndApply(ctx, &job, jobSet)
	}
	done.began = began
	r.inform(&job, done)

	// The whole status is computed from the objects read, and written once.
	next := job.DeepCopy()
	hinders := hindrance(done, jobSet)
	r.setSuspendedCondition(next, hinders)
	done.err = errors.Join(done.err, r.forget(ctx, request.NamespacedName, job.UID))
	copyStatus(next, jobSet)
	requeueAfter := earlierDelay(r.enforceDeadline(next), done.requeueAfter)
	done.err = errors.Join(done.err, r.situate(ctx, next, jobSet, hinders))
	if err = r.writeStatus(ctx, &job, next); apierrors.IsConflict(err) {
		return r.skipStale(ctx, &job, done), nil
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(done.err, err)
	}

	// Events and counters only for a status that was written: a conflict would repeat them.
	r.warn(&job, next, done)
	r.count(&job, next, done.framework)
	reminderAfter := r.tell(&job, next)
	requeueAfter = earlierDelay(requeueAfter, earlierDelay(resizes(next), reminderAfter))

	// After a failure the objects that the next attempt needs stay, unless no pod can start meanwhile.
	if done.err == nil || next.Ended() || jobSet != nil && isTrue(jobSet.Spec.Suspend) {
		stop := r.timed(metrics.PhaseRelease)
		cleanUpAfter, err := r.cleanUp(ctx, next, jobSet)
		stop()
		done.err = errors.Join(done.err, err)
		requeueAfter = earlierDelay(requeueAfter, cleanUpAfter)
	}
	return r.report(next, done, requeueAfter)
}

// cleanUp deletes the objects that the job no longer needs, in the end the job itself, and returns the requeue delay;
// zero if nothing is due.
func (r *Reconciler) cleanUp(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) (time.Duration, error) {
	releaseAfter, failure := r.release(ctx, job, jobSet)
	filesAfter, err := r.removeLeftovers(ctx, job, jobSet)
	failure = errors.Join(failure, err)
	expireAfter, err := r.expire(ctx, job)
	return earlierDelay(releaseAfter, earlierDelay(filesAfter, expireAfter)), errors.Join(failure, err)
}

// planAndApply plans an unfinished job and applies the plan.
func (r *Reconciler) planAndApply(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) outcome {
	done := outcome{framework: metrics.Unknown}
	if suspended(job) && runs(jobSet) {
		// By itself: JobSet's webhook refuses a suspension together with another template, and the pods would run on.
		if jobSet, done.err = r.stop(ctx, jobSet); done.err != nil {
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
		waiting, done.err = r.applyTimed(ctx, job, planned, jobSet)
		switch {
		case done.err != nil:
		case waiting:
			done.awaits = "a PodGroup, claim, ComputeDomain or JobSet of its last start has not gone yet"
		default:
			if jobSet == nil {
				missing := r.Kinds.Missing(planned.Creates)
				done.notes, done.chosen = slices.Concat(planned.Notes, planned.Warnings, missing), planned.Chosen
			}
			done.requeueAfter, done.err = r.remainder(ctx, planned.Plan, jobSet)
		}
	case suspended(job) || !runs(jobSet):
		done.err = err
	default:
		// The job runs, and nothing would be applied: changes of its runtime since its start do not concern it.
		klog.FromContext(ctx).V(2).Info("Left a running job alone", "trainJob", klog.KObj(job), "reason", err.Error())
	}
	return done
}

// applyTimed applies a plan, and measures its duration, and the time from the job's creation to its JobSet.
func (r *Reconciler) applyTimed(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, jobSet *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	defer r.timed(metrics.PhaseApply)()
	if err = r.dropTTL(ctx, jobSet); err != nil {
		return false, err
	}
	if waiting, err = r.removeOutdatedGroups(ctx, job, planned.Plan, jobSet); err != nil || waiting {
		return waiting, err
	}
	waiting, err = r.apply(ctx, job, planned, jobSet)
	if err == nil && !waiting && jobSet == nil {
		r.Metrics.JobSetMade(job.UID, counted(job, planned.Framework), r.Clock.Since(job.CreationTimestamp.Time))
	}
	return waiting, err
}

// skipStale requeues a job whose status write failed because the job has changed meanwhile. Nothing is released or
// counted: the reconciliation that sees its current state does both.
func (r *Reconciler) skipStale(ctx context.Context, job *trainerv1alpha1.TrainJob, done outcome) ctrl.Result {
	klog.FromContext(ctx).V(2).Info("Skipped a TrainJob that changed after it was read", "trainJob", klog.KObj(job))
	r.Metrics.Reconciled(done.framework, metrics.ResultStale, r.Clock.Since(done.began))
	return ctrl.Result{RequeueAfter: waitForCache}
}

// writeStatus writes the changes of the status, if there are any. It is a conflict if the job has changed since it was
// read: a stale cache would write an outdated status, and revert a final condition.
func (r *Reconciler) writeStatus(ctx context.Context, old, next *trainerv1alpha1.TrainJob) error {
	if equality.Semantic.DeepEqual(old.Status, next.Status) {
		return nil
	}
	defer r.timed(metrics.PhaseStatus)()
	seen := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, next, seen); err != nil {
		return fmt.Errorf("writing the status of TrainJob %s: %w", client.ObjectKeyFromObject(old), err)
	}
	return nil
}
