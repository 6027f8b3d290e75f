package waiting

import (
	"time"

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

// DueOf returns when an entity is due that entered the scheduling queue since the same instant; the zero time for another one.
func (q *Queue) DueOf(id contention.ID, since time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	order, known := q.machine.OrderOf(id)
	if !known {
		order = q.waker.coming[id].order
	}
	if !order.Since.Equal(since) {
		return time.Time{}
	}
	return order.Due
}

// OrderOf returns the place in the queue of a gang, of which the pod is a member, or of a pod that is in none.
func (q *Queue) OrderOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.Order {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.orderOf(group, pod)
}

func (q *Queue) orderOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.Order {
	e := contention.Entity{
		ID: idOf(group, pod), Order: orderOf(group, pod), RunTime: runTime(group, pod, q.clock.Clock.Now()),
		Discipline: q.discipline(pod),
	}
	e.Order.Due = q.machine.Due(&e)
	return e.Order
}
