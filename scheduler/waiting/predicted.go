package waiting

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// predicted returns the predicted run time of an entity in seconds, 0 for none. Members that join a unit end with it.
// Services are not predicted, nor are pods that request no accelerator: the machine reserves no place for them.
func (q *Queue) predicted(x *Question, now time.Time) int64 {
	if q.learner == nil || x.leavesPreemption() || x.first().Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return 0
	}
	if len(x.Running) > 0 {
		if u := q.unitOf(x.Running[0]); u != nil && u.End.Certainty == contention.Predicted {
			return max(u.End.At-now.Unix(), 0)
		}
		return 0
	}
	return q.learner.Waits(x.id(), func() forecast.Key { return runtimes.KeyOf(x.Group, x.first(), x.Accelerators) })
}

// Learn has the queue learn run times from now on, and returns its learner: the same at each call.
func (q *Queue) Learn() *runtimes.Learner {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.learner == nil {
		q.learner = runtimes.New(q.now)
	}
	return q.learner
}

// predicted returns the predicted end of a unit.
func (r *Reader) predicted(u snapshot.Unit) (int64, bool) {
	if len(u.Pods) == 0 || u.Group == nil && u.Accelerators(r.Accelerators) == 0 {
		return 0, false
	}
	return r.Learner.Runs(contention.ID(u.Name), u.Started().Unix(), func() forecast.Key {
		return runtimes.KeyOf(u.Group, u.Pods[0], u.Accelerators(r.Accelerators))
	})
}

// Ends reports how a member of a gang, or a single pod, ended, before or after Vacates.
func (q *Queue) Ends(pod *corev1.Pod, how runtimes.End) { q.learns().Ends(idOfUnit(pod), how) }

// Vacates reports that a single pod, or the last member of a gang that had a place, has left it.
func (q *Queue) Vacates(pod *corev1.Pod) { q.learns().Leaves(idOfUnit(pod)) }

// learns returns the learner of run times, nil for a queue that does not learn.
func (q *Queue) learns() *runtimes.Learner {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.learner
}

// idOfUnit returns the ID of the unit of a pod.
func idOfUnit(pod *corev1.Pod) contention.ID {
	if group, ok := snapshot.GroupOf(pod); ok {
		return IDOf(group)
	}
	return IDOfPod(pod)
}
