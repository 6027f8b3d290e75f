package snapshot

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/topology"
)

// says holds the contribution of one pod to its unit. It is read once: a large unit is put together again with each pod
// that arrives or leaves.
type says struct {
	started time.Time
	// grace is the termination grace period in seconds, deleted the end of it in seconds since 1970 if the pod leaves.
	grace, deleted int64
	leaves         bool
	class          string
}

// GraceOf returns the seconds that the pod gets to end when it is evicted.
func GraceOf(pod *corev1.Pod) int64 { return int64(eviction.Grace(pod) / time.Second) }

func saysOf(pod *corev1.Pod) says {
	out := says{
		started: pod.CreationTimestamp.Time, class: pod.Spec.PriorityClassName,
		grace: GraceOf(pod),
	}
	if pod.Status.StartTime != nil {
		out.started = pod.Status.StartTime.Time
	}
	if eviction.Leaves(pod) {
		out.leaves, out.deleted = true, pod.DeletionTimestamp.Unix()
	}
	return out
}

// tally sums up the pods of a unit.
type tally struct {
	// stay counts those that are not being deleted.
	stay int
	// started is the start of the first of them, grace the longest, deleted the last end, classes are their
	// PriorityClasses.
	started        time.Time
	grace, deleted int64
	classes        []string
	// resources name the entries of demand, the sum of the pods' demands; nil if that was not summed up.
	resources []corev1.ResourceName
	demand    topology.Capacity
}

func newTally(resources []corev1.ResourceName) *tally {
	return &tally{resources: resources, demand: make(topology.Capacity, len(resources))}
}

// sum returns the tally of the unit's pods.
func (u Unit) sum() *tally {
	if u.tally != nil {
		return u.tally
	}
	out := newTally(nil)
	for _, pod := range u.Pods {
		out.add(saysOf(pod), nil)
	}
	return out
}

func (t *tally) add(s says, demand topology.Capacity) {
	if !s.leaves {
		t.stay++
	}
	if t.started.IsZero() || s.started.Before(t.started) {
		t.started = s.started
	}
	t.grace, t.deleted = max(t.grace, s.grace), max(t.deleted, s.deleted)
	if !slices.Contains(t.classes, s.class) {
		t.classes = append(t.classes, s.class)
	}
	for i, n := range demand {
		t.demand[i] += n
	}
}

// accelerators returns the number of devices of these kinds that the pods request, false if that was not summed up.
func (t *tally) accelerators(kinds []corev1.ResourceName) (int64, bool) {
	var sum int64
	for _, kind := range kinds {
		at := slices.Index(t.resources, kind)
		if at < 0 || kind == corev1.ResourceCPU || kind == corev1.ResourcePods {
			return 0, false
		}
		sum += t.demand[at]
	}
	return sum, len(t.resources) > 0
}
