package dialects

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// replicas are the labels by which a family of controllers says which replica of which type a pod is.
type replicas struct {
	// types are the labels of the type, index is that of the number among the replicas of a type.
	types []string
	index string
}

// numbered returns a function that reads a pod's place from the labels of the first family whose type it has, and else from keys as rank does.
// Numbers begin at 0 in each type, so workers come after the launcher, master or head, which may have no number.
func numbered(families []replicas, keys ...string) func(*corev1.Pod) (int, bool) {
	others := rank(keys...)
	return func(pod *corev1.Pod) (int, bool) {
		for _, family := range families {
			for _, label := range family.types {
				if kind := pod.Labels[label]; kind != "" {
					return family.place(kind, pod.Labels[family.index])
				}
			}
		}
		return others(pod)
	}
}

func (r replicas) place(kind, index string) (int, bool) {
	number, err := strconv.Atoi(index)
	valid := err == nil && number >= 0
	switch {
	case kind == "worker":
		return number + 1, valid
	case index == "":
		return 0, true
	default:
		return number, valid
	}
}
