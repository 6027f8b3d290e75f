package demand

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TemplateOf returns the fields that decide whether a node holds a pod: images, resources, node selection and
// tolerations. Environments, arguments, volumes, labels and annotations stay out: more users may read pod templates
// than the pods, and labels differ by rank.
func TemplateOf(pod *corev1.Pod) corev1.PodTemplateSpec {
	spec := pod.Spec
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{},
		Spec: corev1.PodSpec{
			Containers:        essentials(spec.Containers),
			InitContainers:    essentials(spec.InitContainers),
			RestartPolicy:     spec.RestartPolicy,
			NodeSelector:      spec.NodeSelector,
			Tolerations:       spec.Tolerations,
			RuntimeClassName:  spec.RuntimeClassName,
			Overhead:          spec.Overhead,
			PriorityClassName: spec.PriorityClassName,
			Priority:          spec.Priority,
			Resources:         spec.Resources,
		},
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		template.Spec.Affinity = &corev1.Affinity{NodeAffinity: spec.Affinity.NodeAffinity}
	}
	return template
}

func essentials(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		out = append(out, corev1.Container{
			Name: c.Name, Image: c.Image,
			Resources:     corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits},
			RestartPolicy: c.RestartPolicy, // an init container with one is a sidecar, which counts beside the others
		})
	}
	return out
}
