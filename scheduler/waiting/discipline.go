package waiting

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// SetDiscipline sets the discipline of the pods of a profile. The first one is also that of entities of no profile. It
// is called while the plugins are made.
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

// DecidedOrder returns the order of an entity in the scheduling queue with what was decided when it entered (see
// contention.Machine.DecideOrder); unchanged if none entered since the same instant.
func (q *Queue) DecidedOrder(id contention.ID, order contention.Order) contention.Order {
	q.mu.Lock()
	defer q.mu.Unlock()
	entered, known := q.machine.OrderOf(id)
	if !known {
		entered = q.waker.coming[id].order
	}
	if entered.Since.Equal(order.Since) {
		order.Due = entered.Due
	}
	return order
}

// OrderOf returns the place in the queue of the pod's gang, or of a pod that is in none.
func (q *Queue) OrderOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.Order {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.orderOf(group, pod)
}

func (q *Queue) orderOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.Order {
	e := contention.Entity{ID: idOf(group, pod), Order: orderOf(group, pod), Discipline: q.discipline(pod)}
	if e.RunTime = declared(group, pod, q.clock.Clock.Now()); e.RunTime == 0 {
		e.RunTime = q.anticipated(e.ID, group, pod)
	}
	q.machine.DecideOrder(&e)
	return e.Order
}

// anticipated returns the run time that will be predicted of an entity which has not been evaluated yet, 0 for none. It
// takes all members to ask for as many accelerators as the pod, and devices are not counted: the order is that of the
// evaluation from then on.
func (q *Queue) anticipated(id contention.ID, group *schedulingv1beta1.PodGroup, pod *corev1.Pod) int64 {
	if q.learner == nil || q.reader == nil || pod == nil || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return 0
	}
	members := int64(1)
	if group != nil && group.Spec.SchedulingPolicy.Gang != nil {
		members = int64(group.Spec.SchedulingPolicy.Gang.MinCount)
	}
	accelerators := members * snapshot.Accelerators([]*corev1.Pod{pod}, q.reader.Accelerators)
	if group == nil && accelerators == 0 {
		return 0
	}
	return q.learner.Expects(id, func() forecast.Key { return runtimes.KeyOf(group, pod, accelerators) })
}
