package dialects

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Keys are keys of labels and annotations, labels first.
type Keys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

func labels(keys ...string) Keys { return Keys{Labels: keys} }

// value returns the value of the first key that a pod has.
func (k Keys) value(pod *corev1.Pod) string {
	value, _ := k.first(pod)
	return value
}

// first returns the value of the first key that a pod has, and which one it is.
func (k Keys) first(pod *corev1.Pod) (value, key string) {
	for _, key := range k.Labels {
		if value := pod.Labels[key]; value != "" {
			return value, "label " + key
		}
	}
	for _, key := range k.Annotations {
		if value := pod.Annotations[key]; value != "" {
			return value, "annotation " + key
		}
	}
	return "", ""
}

// rank returns a function that reads a pod's place in its gang from the first of some labels or annotations that the pod has.
func rank(keys ...string) func(*corev1.Pod) (int, bool) {
	return func(pod *corev1.Pod) (int, bool) {
		for _, key := range keys {
			if text := cmp.Or(pod.Labels[key], pod.Annotations[key]); text != "" {
				number, err := strconv.Atoi(text)
				return number, err == nil && number >= 0
			}
		}
		return 0, false
	}
}

// replicas are the labels by which controllers name the type and the index of a pod's replica.
type replicas struct {
	types, index Keys
}

// numbered is rank for pods of replicas of some types, and of keys for others. Numbers begin at 0 in each type, so
// workers follow the launcher, master or head, which may have no number.
func numbered(families []replicas, keys ...string) func(*corev1.Pod) (int, bool) {
	return func(pod *corev1.Pod) (int, bool) {
		for _, family := range families {
			index := family.index.value(pod)
			switch number, err := strconv.Atoi(cmp.Or(index, "0")); family.types.value(pod) {
			case "":
			case "worker":
				return number + 1, index != "" && err == nil && number >= 0
			default:
				return number, err == nil && number >= 0
			}
		}
		return rank(keys...)(pod)
	}
}

// size reads a number of members from an annotation of pods.
func size(pod *corev1.Pod, annotation string) (int, error) {
	text := pod.Annotations[annotation]
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		const says = "annotation %s of pod %s is %q, and must be a positive number: %w"
		return 0, fmt.Errorf(says, annotation, pod.Name, text, ErrNoSize)
	}
	return number, nil
}

// field reads a number of an object; missing is for an object without the field.
func field(object map[string]any, missing int, path ...string) int {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if number := whole(value); found && err == nil && number >= 0 {
		return min(number, math.MaxInt32)
	}
	return missing
}

// byLabel returns a function that names the object whose name a label of pods has.
func byLabel(label, resource, version, group string) func(*corev1.Pod) Source {
	objects := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	return func(pod *corev1.Pod) Source { return Source{objects, pod.Labels[label]} }
}

// owned returns a function that maps a lost pod to the reaction of its owner, by the owner's kind: Jobs and the like
// create it again, and without an owner it is not replaced.
func owned(by map[string]Loss) func(*corev1.Pod) Loss {
	return func(pod *corev1.Pod) Loss {
		if owner := metav1.GetControllerOf(pod); owner != nil {
			return cmp.Or(by[owner.Kind], Replaced)
		}
		return Gone
	}
}
