package eviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// LongestGrace is the longest time that a pod which has to leave gets to end. Kubernetes bounds neither the grace
// period that a tenant gives his pod nor the one with which he deletes it: without a bound others would wait for years
// for the room of a pod that stays.
const LongestGrace = time.Hour

// Grace returns the time that the pod gets to end when it is evicted: its own grace period, 0 to LongestGrace.
func Grace(pod *corev1.Pod) time.Duration {
	own := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(min(max(own, 0), int64(LongestGrace/time.Second))) * time.Second
}

// Leaves reports whether the pod is being deleted and ends within LongestGrace. One with a longer grace runs on, and is
// evicted as if it had not been deleted.
func Leaves(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && !lingers(pod)
}

// lingers reports whether the pod was deleted with a longer grace than any pod gets.
func lingers(pod *corev1.Pod) bool {
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	return pod.DeletionTimestamp != nil && (grace < 0 || grace > int64(LongestGrace/time.Second))
}
