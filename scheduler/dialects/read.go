package dialects

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// label returns a function that reads a label of pods.
func label(key string) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string { return pod.Labels[key] }
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

// size reads a number of members from an annotation of pods.
func size(pod *corev1.Pod, annotation string) (int, error) {
	text := pod.Annotations[annotation]
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, fmt.Errorf(
			"annotation %s of pod %s is %q, and must be a positive number: %w",
			annotation,
			pod.Name,
			text,
			ErrNoSize,
		)
	}
	return number, nil
}

// field reads a number of an object; missing is for an object without the field.
func field(object map[string]any, missing int, path ...string) int {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if !found || err != nil {
		return missing
	}
	switch number := value.(type) {
	case int64:
		return int(min(number, math.MaxInt32))
	case float64:
		return int(min(number, math.MaxInt32))
	}
	return missing
}

// owned returns a function that says what is done about a lost pod by the kind of its owner: Jobs and the like create it again, and without an
// owner it is gone.
func owned(by map[string]Loss) func(*corev1.Pod) Loss {
	return func(pod *corev1.Pod) Loss {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			return Gone
		}
		return cmp.Or(by[owner.Kind], Replaced)
	}
}
