package situation

import (
	corev1 "k8s.io/api/core/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// Event is a report to a job's owner.
type Event struct {
	// Type is Normal or Warning, Reason a CamelCase word, Message a sentence.
	Type, Reason, Message string
}

// Passes reports whether the Event is about a wait of every gang that starts: it is no news unless it lasts.
func (e Event) Passes() bool { return e.Reason == noPods || e.Reason == notSeen }

// News are the Events that follow from a change of status.scheduling. before is nil for a job without a status.
func News(before, after *trainerv1alpha1.SchedulingStatus) []Event {
	if before == nil {
		before = &trainerv1alpha1.SchedulingStatus{}
	}
	var out []Event
	for _, kind := range []struct{ condition, eventType string }{
		{trainerv1alpha1.SchedulingPreempted, corev1.EventTypeWarning},
		{trainerv1alpha1.SchedulingPlaced, corev1.EventTypeNormal},
		{trainerv1alpha1.SchedulingMoved, corev1.EventTypeNormal},
	} {
		was, is := holding(before.Conditions, kind.condition), holding(after.Conditions, kind.condition)
		if is != nil && (was == nil || was.Message != is.Message) {
			out = append(out, Event{kind.eventType, kind.condition, is.Message})
		}
	}
	if is, was := after.LastFailure, before.LastFailure; is != nil &&
		(was == nil || text(was) != text(is) || !was.Time.Equal(&is.Time)) {
		out = append(out, Event{corev1.EventTypeWarning, standing.RankFailedReason, text(is)})
	}
	if after.Phase == trainerv1alpha1.PhaseSuspended && (before.Phase != after.Phase || before.Reason != after.Reason) {
		out = append(out, Event{corev1.EventTypeNormal, string(after.Phase), after.Reason})
	}
	if why, ok := Standing(after); ok && !why.Passes() && isNews(before, why) {
		out = append(out, why)
	}
	return out
}

// Standing returns the Event with the reason why a job waits; false if it does not. status is nil for a job that has
// none. Estimated instants are left out: client-go drops Events of an object that has one each minute, and a preemption
// must not be among them. status.queue has them.
func Standing(status *trainerv1alpha1.SchedulingStatus) (Event, bool) {
	if status == nil {
		return Event{}, false
	}
	queued := holding(status.Conditions, trainerv1alpha1.SchedulingQueued)
	if queued == nil {
		return Event{}, false
	}
	if evicted := holding(status.Conditions, trainerv1alpha1.SchedulingPreempted); evicted != nil &&
		evicted.Message == queued.Message {
		return Event{}, false // there is an Event for that already
	}
	return Event{corev1.EventTypeWarning, queued.Reason, standing.WithoutInstants(queued.Message)}, true
}

func isNews(before *trainerv1alpha1.SchedulingStatus, why Event) bool {
	told, ok := Standing(before)
	return !ok || told != why
}
