package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/topology"
)

// Late are the members that the group announces (see topology.AnnotationLateMembers) and that none of the pods is, as
// pods without a UID. An error names the annotation.
func Late(group *schedulingv1beta1.PodGroup, there ...[]*corev1.Pod) ([]*corev1.Pod, error) {
	value, ok := group.Annotations[topology.AnnotationLateMembers]
	if !ok {
		return nil, nil
	}
	var announced []corev1.PodTemplateSpec
	read := json.NewDecoder(bytes.NewBufferString(value))
	read.DisallowUnknownFields()
	if err := read.Decode(&announced); err != nil {
		return nil, fmt.Errorf(
			"annotation %s must be a JSON list of pod templates: %w",
			topology.AnnotationLateMembers,
			err,
		)
	}
	var late []*corev1.Pod
	came := make(map[*corev1.Pod]bool)
	for i := range announced {
		if !arrived(&announced[i], there, came) {
			late = append(late, &corev1.Pod{ObjectMeta: announced[i].ObjectMeta, Spec: announced[i].Spec})
		}
	}
	return late, nil
}

// arrived takes one pod with all the labels of the announced member, if there is one that is no other's.
func arrived(announced *corev1.PodTemplateSpec, there [][]*corev1.Pod, came map[*corev1.Pod]bool) bool {
	for _, pods := range there {
		for _, pod := range pods {
			if !came[pod] && carries(pod, announced.Labels) {
				came[pod] = true
				return true
			}
		}
	}
	return false
}

func carries(pod *corev1.Pod, labels map[string]string) bool {
	for key, value := range labels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return true
}
