package waiting

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// SetDiscipline sets the discipline of the pods of a profile. The first one is also that of entities of no profile. It is called while the
// plugins are made.
func (q *Queue) SetDiscipline(profile string, d contention.Discipline) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.disciplines) == 0 {
		q.machine.SetDiscipline(d)
	}
	q.disciplines[profile] = d
}

// discipline returns that of a pod's profile, nil for that of entities of no profile.
func (q *Queue) discipline(pod *corev1.Pod) *contention.Discipline {
	if pod == nil {
		return nil
	}
	if d, ok := q.disciplines[pod.Spec.SchedulerName]; ok {
		return &d
	}
	return nil
}

// OrderOf returns the place in the queue of a gang, of which the pod is a member, or of a pod that is in none. Before it has been evaluated it
// is due when it became ready, which is no later than it will be.
func (q *Queue) OrderOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.Order {
	q.mu.Lock()
	defer q.mu.Unlock()
	if of, waits := q.machine.OrderOf(idOf(group, pod)); waits {
		return of
	}
	return orderOf(group, pod)
}
