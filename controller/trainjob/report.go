package trainjob

import (
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

const (
	// reasonFailed is the reason of the Event for a job whose objects could not be created.
	reasonFailed = "TrainJobResourcesCreationFailed"
	// reasonPolicy is the reason of Events on changes of the runtime's policy by the policy for evicted members.
	reasonPolicy = "DisruptionPolicy"
	// reasonChosen is the reason of the Event on the computation of a job's resources.
	reasonChosen = "ResourcesChosen"
	// noteLimit keeps an Event's note below the API's limit of 1024 bytes, and the message of a condition far below its
	// own of 32,768.
	noteLimit = 950
	// waitForRuntime is the time to wait for a missing runtime, if the watch is not sooner.
	waitForRuntime = 30 * time.Second
)

// inform writes Events about the JobSet that was created. It is created once, so that they are not repeated if the
// status is not written.
func (r *Reconciler) inform(job *trainerv1alpha1.TrainJob, done outcome) {
	for _, note := range done.notes {
		r.Recorder.Eventf(job, corev1.EventTypeNormal, reasonPolicy, "%s", note)
	}
	if done.chosen != "" {
		r.Recorder.Eventf(job, corev1.EventTypeNormal, reasonChosen, "%s", shorten(done.chosen))
	}
}

// report writes the result to Events, metrics and the queue. requeueAfter is the delay until the job's deadline, the
// deletion of its group or another step that is due by time; zero where only an event requeues the job.
func (r *Reconciler) report(
	job *trainerv1alpha1.TrainJob, done outcome, requeueAfter time.Duration,
) (ctrl.Result, error) {
	result := resultOf(done)
	r.Metrics.Reconciled(done.framework, result, r.Clock.Since(done.began))
	switch {
	case done.unfit != "" && done.awaits != "":
		return ctrl.Result{RequeueAfter: earlierDelay(requeueAfter, waitForNodes)}, nil
	case done.awaits != "":
		return ctrl.Result{RequeueAfter: waitForGroup}, nil
	case done.err == nil:
		return ctrl.Result{RequeueAfter: requeueAfter}, nil
	}
	note := brief(done.err)
	r.Recorder.Eventf(job, corev1.EventTypeWarning, reasonFailed,
		"TrainJob resources reconciliation failed: %s", note)
	switch {
	case result == metrics.ResultMissingRuntime: // the watch requeues it when the runtime appears
		return ctrl.Result{RequeueAfter: earlierDelay(requeueAfter, waitForRuntime)}, nil
	case result != metrics.ResultRefused:
		return ctrl.Result{}, done.err
	case requeueAfter > 0: // a job that cannot be rendered misses its deadline like any other
		return ctrl.Result{RequeueAfter: requeueAfter}, nil
	default: // a change of the job or of its runtime requeues it; until then trying again is no use
		return ctrl.Result{}, reconcile.TerminalError(done.err) //nolint:wrapcheck // a mark on our own error
	}
}

// brief returns the text of an error in at most noteLimit bytes. The middle is left out of a longer one: JobSet's
// answers print whole templates between the field and its fault.
func brief(err error) string { return shorten(err.Error()) }

// shorten leaves out the middle of a text of more than noteLimit bytes.
func shorten(text string) string {
	const gap = " ... "
	if len(text) <= noteLimit {
		return text
	}
	half := (noteLimit - len(gap)) / 2
	return strings.ToValidUTF8(text[:half], "") + gap + strings.ToValidUTF8(text[len(text)-half:], "")
}

// earlierDelay returns the smaller of two delays; zero is none.
func earlierDelay(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func resultOf(done outcome) string {
	var refusal *plan.RefusalError
	switch {
	case done.awaits != "":
		return metrics.ResultWaiting
	case done.err == nil:
		return metrics.ResultOK
	case errors.Is(done.err, resolve.ErrMissing):
		return metrics.ResultMissingRuntime
	case errors.As(done.err, &refusal), errors.Is(done.err, resolve.ErrUnknown), IsTooLarge(done.err):
		return metrics.ResultRefused
	default:
		return metrics.ResultError
	}
}
