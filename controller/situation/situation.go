package situation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// Known is the observed state of a job.
type Known struct {
	// Job has its new conditions, and the previous status.scheduling.
	Job *trainerv1alpha1.TrainJob
	// JobSet is nil if there is none.
	JobSet *jobsetv1alpha2.JobSet
	// Groups are the PodGroups of the job, in any order. Those that are being deleted are among them only after the job
	// has ended.
	Groups []schedulingv1beta1.PodGroup
	// Hindrance is the reason for which the JobSet of a job that is to run does not; empty if none is known.
	Hindrance string
	// Refused are the ReplicatedJobs with pods that the API server refuses, and the reasons.
	Refused map[string]string
	// Elastic is the number of nodes of an elastic job; nil for a job of one size.
	Elastic *trainerv1alpha1.ElasticStatus
	Now     time.Time
}

// reasonLimit is the longest reason in bytes, as the CRD has it in characters.
const reasonLimit = 1024

// Of returns the status.scheduling that a job has to have.
func Of(k Known) *trainerv1alpha1.SchedulingStatus {
	next := &trainerv1alpha1.SchedulingStatus{}
	if before := k.Job.Status.Scheduling; before != nil {
		next = before.DeepCopy()
		next.Reason, next.Queue = "", nil
	}
	next.Elastic = k.Elastic
	if k.JobSet != nil {
		next.Ranks = plan.Ranks(k.JobSet.Spec)
	}
	// A cache lists groups in any order, and a job's status must not depend on it.
	k.Groups = slices.SortedFunc(slices.Values(k.Groups), func(a, b schedulingv1beta1.PodGroup) int {
		return cmp.Compare(a.Name, b.Name)
	})
	w := &writer{SchedulingStatus: next, now: metav1.NewTime(k.Now)}
	end := k.Job.Ending()
	switch {
	case end != nil && end.Type == trainerv1alpha1.TrainJobComplete:
		w.setEnded(trainerv1alpha1.PhaseComplete, end)
	case end != nil:
		w.setEnded(trainerv1alpha1.PhaseFailed, end)
	case k.Job.Spec.Suspend != nil && *k.Job.Spec.Suspend:
		w.setInactive(trainerv1alpha1.PhaseSuspended, suspendedBy(k.Job))
	case k.Hindrance != "":
		w.setInactive(trainerv1alpha1.PhaseBlocked, k.Hindrance)
		if meta.IsStatusConditionTrue(k.Job.Status.Conditions, trainerv1alpha1.TrainJobSuspended) {
			w.setTrue(trainerv1alpha1.SchedulingNotResumed, "Blocked", k.Hindrance)
		}
	default:
		w.setActive(k)
	}
	if next.Phase != trainerv1alpha1.PhaseBlocked {
		w.setFalse(trainerv1alpha1.SchedulingNotResumed, string(next.Phase), "its JobSet is up to date")
	}
	next.Reason = cut(next.Reason)
	if failure := lastFailure(k.Groups, next.LastFailure); failure != nil {
		next.LastFailure = failure
	}
	if k.JobSet != nil {
		next.Restarts = max(next.Restarts, k.JobSet.Status.RestartsCountTowardsMax)
	}
	return next
}

// writer is a status that is being written.
type writer struct {
	*trainerv1alpha1.SchedulingStatus

	now metav1.Time
}

// setTrue sets a condition to True.
func (w *writer) setTrue(kind, reason, message string) {
	w.setCondition(kind, metav1.ConditionTrue, reason, message)
}

// setFalse sets a condition that is True to False. A condition that never was True is not added, and one that is False
// retains its reason.
func (w *writer) setFalse(kind, reason, message string) {
	if meta.IsStatusConditionTrue(w.Conditions, kind) {
		w.setCondition(kind, metav1.ConditionFalse, reason, message)
	}
}

func (w *writer) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: cut(message), LastTransitionTime: w.now,
	})
}

// setEnded writes the phase and conditions of a job that has ended. Its placement is retained.
func (w *writer) setEnded(phase trainerv1alpha1.TrainJobPhase, why *metav1.Condition) {
	w.Phase, w.Reason, w.WaitingSince = phase, why.Message, nil
	w.setFalse(trainerv1alpha1.SchedulingQueued, string(phase), "it is over")
	w.setFalse(trainerv1alpha1.SchedulingPlaced, string(phase), "it is over")
	w.setFalse(trainerv1alpha1.SchedulingPreempted, string(phase), "it is over")
}

// setInactive writes the phase and conditions of a job that is suspended or blocked: it has no pods and waits for none.
func (w *writer) setInactive(phase trainerv1alpha1.TrainJobPhase, why string) {
	w.Phase, w.Reason, w.WaitingSince = phase, why, nil
	w.clearPlacement(string(phase), why)
	w.setFalse(trainerv1alpha1.SchedulingQueued, string(phase), why)
	w.setFalse(trainerv1alpha1.SchedulingPreempted, string(phase), why)
}

// clearPlacement removes the placement of a job without nodes, and remembers its domain: setPlacement compares it.
func (w *writer) clearPlacement(reason, why string) {
	if w.Placement != nil {
		w.LastDomain, w.Placement = w.Placement.Domain, nil
	}
	w.setFalse(trainerv1alpha1.SchedulingPlaced, reason, why)
}

// setActive writes the phase and conditions of a job whose JobSet may have pods.
func (w *writer) setActive(k Known) {
	if k.areReady() { // they have nodes, whatever the conditions of their groups: not every scheduler sets them
		w.WaitingSince = nil
		w.setPlacement(k.Groups)
		w.setStartingOrRunning(k)
		return
	}
	unplaced := unplacedOf(k.Groups, k.JobSet, w.placedAt())
	waiting := waitingOf(unplaced, k.JobSet)
	w.setPreempted(unplaced)
	refused, why := refusal(k.JobSet, k.Refused)
	switch {
	case refused:
		w.setWaiting(groupStanding{reason: podsRefused, message: why})
	case len(waiting) > 0:
		w.setWaiting(lastOf(waiting))
	case len(unplaced) > 0:
		w.WaitingSince = nil
		w.setStartingOrRunning(k)
		w.clearPlacement(string(w.Phase), w.Reason)
		w.setFalse(trainerv1alpha1.SchedulingQueued, string(w.Phase), w.Reason)
	default:
		w.WaitingSince = nil
		w.setPlacement(k.Groups)
		w.setStartingOrRunning(k)
	}
}

// placedAt is the time at which the job last got its nodes; zero if it waits, or if that is not known.
func (w *writer) placedAt() metav1.Time {
	queued := meta.FindStatusCondition(w.Conditions, trainerv1alpha1.SchedulingQueued)
	if queued == nil || queued.Status == metav1.ConditionTrue || queued.Reason != trainerv1alpha1.SchedulingPlaced {
		return metav1.Time{}
	}
	return queued.LastTransitionTime
}

// setPreempted sets the condition Preempted, with its cause, for a group of the job without nodes since its preemption;
// of several groups, the first one.
func (w *writer) setPreempted(unplaced []groupStanding) {
	for _, s := range unplaced {
		if s.evicted != nil && s.evicted.Reason == schedulingv1beta1.PodGroupReasonPreemptionByScheduler {
			w.setTrue(trainerv1alpha1.SchedulingPreempted, s.evicted.Reason, s.evicted.Message)
			return
		}
	}
}

// setWaiting writes the phase and conditions of a job that waits for nodes, or for its pods.
func (w *writer) setWaiting(s groupStanding) {
	w.Phase, w.Reason = trainerv1alpha1.PhaseWaiting, s.message
	if w.WaitingSince == nil {
		w.WaitingSince = w.now.DeepCopy()
	}
	w.clearPlacement(s.reason, s.message)
	w.setTrue(trainerv1alpha1.SchedulingQueued, s.reason, s.message)
	w.Queue = s.queue
}

// setPlacement writes the placement and conditions of a job all of whose groups have nodes.
func (w *writer) setPlacement(groups []schedulingv1beta1.PodGroup) {
	w.setFalse(trainerv1alpha1.SchedulingQueued, trainerv1alpha1.SchedulingPlaced, "it has its nodes")
	w.setFalse(trainerv1alpha1.SchedulingPreempted, trainerv1alpha1.SchedulingPlaced, "it has its nodes again")
	place, text := placementOf(groups)
	if place == nil {
		return
	}
	w.Placement = place
	w.setTrue(trainerv1alpha1.SchedulingPlaced, trainerv1alpha1.SchedulingPlaced, text)
	if w.LastDomain == "" || place.Domain == "" { // the domain of nodes that filters chose is not known
		return
	}
	if w.LastDomain == place.Domain {
		w.setFalse(trainerv1alpha1.SchedulingMoved, "Stayed", "it is where it was before its last interruption")
	} else {
		const moved = trainerv1alpha1.SchedulingMoved
		w.setTrue(moved, moved, "from "+w.LastDomain+" to "+place.Domain)
	}
	w.LastDomain = ""
}

// setStartingOrRunning sets the phase Running for a job with ready ranks, else Starting.
func (w *writer) setStartingOrRunning(k Known) {
	w.Phase = trainerv1alpha1.PhaseStarting
	if k.JobSet == nil {
		return
	}
	if missing := k.notReady(); len(missing) > 0 {
		w.Reason = "not ready yet: " + strings.Join(missing, ", ")
		return
	}
	w.Phase = trainerv1alpha1.PhaseRunning
}

// areReady reports whether all ranks of a job are ready; of an elastic one, as many as it needs.
func (k Known) areReady() bool {
	return k.JobSet != nil && len(plan.Trainers(k.JobSet.Spec)) > 0 && len(k.notReady()) == 0
}

// notReady are the jobs that train and are not ready yet, after those that run before them: "node 0 of 1". None if all
// that train are ready.
func (k Known) notReady() []string {
	jobSet := k.JobSet
	trains := plan.Trainers(jobSet.Spec)
	var before, out []string
	for _, job := range jobSet.Spec.ReplicatedJobs {
		status := statusOf(jobSet, job.Name)
		isTrainer := slices.Contains(trains, job.Name)
		how := jobsetv1alpha2.DependencyReady
		for _, trainer := range trains {
			if plan.Awaited(jobSet.Spec, trainer)[job.Name] == jobsetv1alpha2.DependencyComplete {
				how = jobsetv1alpha2.DependencyComplete
			}
		}
		done := doneOf(status, how)
		text := fmt.Sprintf("%s %d of %d", job.Name, done, job.Replicas)
		if isTrainer && k.Elastic != nil { // a Job is ready when all its pods are
			text = fmt.Sprintf(
				"%s %d of %d to %d ranks",
				job.Name,
				k.Elastic.ReadyNodes,
				k.Elastic.MinNodes,
				k.Elastic.MaxNodes,
			)
			if k.Elastic.ReadyNodes >= k.Elastic.MinNodes {
				done = job.Replicas
			}
		}
		switch {
		case done >= job.Replicas:
		case isTrainer:
			out = append(out, text)
		case status.Active > 0:
			before = append(before, text)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return append(before, out...)
}

// suspendedBy names the suspender of a job: Kueue or the job's owner.
func suspendedBy(job *trainerv1alpha1.TrainJob) string {
	if queue := job.Labels[plan.KueueQueueLabel]; queue != "" {
		return "Kueue keeps it suspended until queue " + queue + " admits it"
	}
	return "its owner suspended it"
}

func cut(text string) string {
	if len(text) <= reasonLimit {
		return text
	}
	return strings.ToValidUTF8(text[:reasonLimit-len("...")], "") + "..."
}

// worseOf returns the smaller of two qualities; an empty one is none.
func worseOf(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return min(a, b)
}
