package trainjob

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// reasonUnfit is the reason of the Event for a gang with pods that no node holds.
	reasonUnfit = "NoNodeFits"
	// waitForNodes is the time until the next look for a node that holds the pods of a gang.
	waitForNodes = 30 * time.Second
)

// unfit returns why no node holds pods of a gang that is about to start; empty for one that runs.
func (r *Reconciler) unfit(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan, jobSet *jobsetv1alpha2.JobSet,
) string {
	if len(planned.PodGroups) == 0 || suspended(job) || runs(jobSet) {
		return ""
	}
	return strings.Join(r.Nodes.Unfit(ctx, planned.JobSet), "; ")
}

// heldBack returns the message for a gang whose pods are held back.
func heldBack(unfit string) string { return unfit + "; its pods are made when a node holds them" }

// warn writes an Event for a gang that no node holds: each time that its pods are created all the same, and, for a gang
// that is held back, when the reason is new.
func (r *Reconciler) warn(before, after *trainerv1alpha1.TrainJob, done outcome) {
	switch {
	case done.unfit == "" || done.err != nil:
		return
	case done.awaits == "":
		r.Recorder.Eventf(after, corev1.EventTypeWarning, reasonUnfit, "%s", shorten(done.unfit))
		return
	case done.awaits != heldBack(done.unfit):
		return // the pods of its last start are not deleted yet
	}
	if was := before.Status.Scheduling; was == nil || was.Reason != after.Status.Scheduling.Reason {
		r.Recorder.Eventf(after, corev1.EventTypeWarning, reasonUnfit, "%s", shorten(done.awaits))
	}
}
