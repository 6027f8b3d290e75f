package fakecluster

import (
	"iter"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// addRequests adds the requests of a pod. Init containers and overhead are not counted: no pod has any here.
func addRequests(to corev1.ResourceList, pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		for name, q := range c.Resources.Requests {
			sum := to[name]
			sum.Add(q)
			to[name] = sum
		}
	}
}

func resourceNames(list corev1.ResourceList) iter.Seq[corev1.ResourceName] { return maps.Keys(list) }
