package dialects

import corev1 "k8s.io/api/core/v1"

// kueue is the dialect of Kueue's groups of plain pods, which SkyPilot and others write. Pods stay gated until Kueue has admitted all of them.
func kueue() Dialect {
	const name = "kueue.x-k8s.io/pod-group-name"
	// Newer releases write a name that is too long for a label into an annotation.
	marks := Keys{Labels: []string{name}, Annotations: []string{name}}
	return Dialect{
		Name: "kueue", Member: marks, Group: marks.value,
		Minimum: func(pod *corev1.Pod, _ map[string]any) (int, error) {
			return size(pod, "kueue.x-k8s.io/pod-group-total-count")
		},
		Rank: rank("kueue.x-k8s.io/pod-group-pod-index", "batch.kubernetes.io/job-completion-index"),
		Loss: owned(nil),
	}
}
