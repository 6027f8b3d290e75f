package waiting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// In-tree preemption needs the loss from evicting pods, too: it finds the victims of pods about which the machine does
// not know enough. It asks for many nodes at once.

// Reads sets the reader with which the queue computes losses. It is called while the plugins are made.
func (q *Queue) Reads(r *Reader) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reader = r
}

// SetTerms says when an eviction pays.
func (q *Queue) SetTerms(t contention.Terms) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machine.SetTerms(t)
}

func (q *Queue) reads() *Reader {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reader
}

// LostWork returns the accelerator-seconds that are lost if these pods leave now, and their gangs with them, as
// contention.Unit has it. All of a gang's pods have to be among them.
func (q *Queue) LostWork(pods []*corev1.Pod) int64 {
	r := q.reads()
	if r == nil || !slices.ContainsFunc(pods, r.mayHold) {
		return 0
	}
	reading := snapshot.Reading{Accelerators: r.Accelerators}
	if r.Stock != nil {
		reading.Devices = r.Stock.Held
	}
	var lost int64
	now := q.now()
	for _, u := range r.unitsOf(pods) {
		lost += u.Contender(reading).Lost(now)
	}
	return lost
}

// mayHold reports whether a pod may have accelerators. Most pods have none, and they are evaluated with each node.
func (r *Reader) mayHold(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for _, kind := range r.Accelerators {
				if _, asks := containers[i].Resources.Requests[kind]; asks {
					return true
				}
			}
		}
	}
	return false
}

// unitsOf groups the pods by gang. A pod in no gang is a unit of its own.
func (r *Reader) unitsOf(pods []*corev1.Pod) []snapshot.Unit {
	var out []snapshot.Unit
	at := make(map[types.NamespacedName]int)
	for _, pod := range pods {
		key, member := snapshot.GroupOf(pod)
		if i, known := at[key]; known {
			out[i].Pods = append(out[i].Pods, pod)
			continue
		}
		u := snapshot.Unit{Pods: []*corev1.Pod{pod}}
		if member {
			if u.Group = r.gang(key); u.Group != nil {
				at[key] = len(out)
			}
		}
		out = append(out, u)
	}
	return out
}

// gang returns the PodGroup of a gang, nil if it is no gang or is deleted.
func (r *Reader) gang(key types.NamespacedName) *schedulingv1beta1.PodGroup {
	group, err := r.Groups().Get(key.Namespace, key.Name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	return group
}

// Protects reports whether the PriorityClass of one of the pods exempts them from preemption.
func (q *Queue) Protects(pods []*corev1.Pod) bool {
	r := q.reads()
	return r != nil &&
		slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return r.protects(pod.Spec.PriorityClassName) })
}
