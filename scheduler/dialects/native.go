package dialects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// native is the name of the dialect of Kubernetes' own groups, in which PodGroups have the group's own name.
const native = "native"

// NativeVersions are the versions of Kubernetes' own PodGroups that the dialect reads, the preferred first: Kubernetes 1.36 serves v1alpha2.
func NativeVersions() []string { return []string{"v1beta1", "v1alpha2"} }

// Native is the dialect of Kubernetes' own PodGroups of a version, for a scheduler that stores gangs in custom
// resources. Pods that name a group by our label too are those of Lockstep's controller.
func Native(version string) Dialect {
	return Dialect{
		Name: native,
		Group: func(pod *corev1.Pod) string {
			group := pod.Spec.SchedulingGroup
			if group == nil || group.PodGroupName == nil || pod.Labels[gangapi.Label] != "" {
				return ""
			}
			return *group.PodGroupName
		},
		Source: func(pod *corev1.Pod) Source {
			groups := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: version, Resource: "podgroups"}
			return Source{groups, *pod.Spec.SchedulingGroup.PodGroupName}
		},
		Minimum: func(pod *corev1.Pod, object map[string]any) (int, error) {
			// Pods of a basic group start one by one.
			if minimum := field(object, 1, "spec", "schedulingPolicy", "gang", "minCount"); minimum > 0 {
				return minimum, nil
			}
			return 0, fmt.Errorf("PodGroup %s has no minCount: %w", *pod.Spec.SchedulingGroup.PodGroupName, ErrNoSize)
		},
		Loss: owned(nil),
	}
}
