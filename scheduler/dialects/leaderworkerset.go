package dialects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/topology"
)

// leaderWorkerSet is the dialect of LeaderWorkerSets: each group of a leader and its workers is a gang.
func leaderWorkerSet() Dialect {
	const prefix = "leaderworkerset.sigs.k8s.io/"
	return Dialect{
		Name: "leaderworkerset", Member: labels(prefix + "name"),
		Group: func(pod *corev1.Pod) string {
			set, group := pod.Labels[prefix+"name"], pod.Labels[prefix+"group-index"]
			if set == "" || group == "" {
				return ""
			}
			return set + "-" + group
		},
		Source: byLabel(prefix+"name", "leaderworkersets", "v1", "leaderworkerset.x-k8s.io"),
		Minimum: func(pod *corev1.Pod, object map[string]any) (int, error) {
			// Workers are created when the leader is ready: it must not wait for them.
			if policy, _, _ := unstructured.NestedString(object, "spec", "startupPolicy"); policy == "LeaderReady" {
				return 1, nil
			}
			return size(pod, prefix+"size")
		},
		Rank: rank(prefix + "worker-index"),
		// The group is placed in one domain; that no other group is there is not enforced.
		Wishes: func(pod *corev1.Pod, _ map[string]any) map[string]string {
			level := pod.Annotations[prefix+"exclusive-topology"]
			if level == "" {
				return nil
			}
			return map[string]string{topology.AnnotationRequiredTopology: level}
		},
		// RecreateGroupOnPodRestart is the default.
		Loss: func(*corev1.Pod) Loss { return Restarted },
	}
}
