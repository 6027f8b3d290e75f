package gangapi

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Label names the PodGroup of a pod. It is read in every mode, and cannot change in the life of a pod (policy
// gangmembers.lockstep.dev).
const Label = "lockstep.dev/pod-group"

// LongestName is the number of characters that the name of a PodGroup may have if pods join it by Label.
const LongestName = 63

// GroupOf returns the name of the PodGroup that a pod or a pod template belongs to, "" for none. The field of
// Kubernetes' own API wins: it cannot be changed, whatever policies are installed.
func GroupOf(meta metav1.ObjectMeta, spec corev1.PodSpec) string {
	if group := spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return meta.Labels[Label]
}

// Join puts a pod, or the pods of a template, into a PodGroup, by the field and by the label: API servers without the
// field drop it, and the label survives a change of the mode.
func Join(meta *metav1.ObjectMeta, spec *corev1.PodSpec, group string) {
	spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	if len(group) > LongestName {
		return
	}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[Label] = group
}

// AnnotationRank is a pod's place in its gang, from 0. Pods of Jobs and JobSets get their rank from these; other pods
// set the annotation, or it is filled in from another controller's mark.
const AnnotationRank = "lockstep.dev/rank"

// Membership names the group of a marked pod, and its place there.
type Membership struct {
	// Group is the name of the pod's PodGroup.
	Group string
	// Rank is its place in the gang; nil if the mark has none.
	Rank *int
}

// Marks returns the membership of a pod that names no group itself, by another controller's mark; false for a pod
// without one.
type Marks func(pod *corev1.Pod) (Membership, bool)

// Reading configures a client's decoding of pods.
type Reading struct {
	// Marks reads the marks of other controllers; nil reads none.
	Marks Marks
	// Aliases are further schedulerNames of a scheduler, each with the name that decoded pods have in its place.
	Aliases map[string]string
}

// Read normalizes a decoded pod: it resolves aliases of its schedulerName, and fills in its group.
func (r Reading) Read(pod *corev1.Pod) {
	if name, isAlias := r.Aliases[pod.Spec.SchedulerName]; isAlias {
		pod.Spec.SchedulerName = name
	}
	if r.Marks == nil {
		Adopt(pod)
		return
	}
	Adopt(pod, r.Marks)
}

// Adopt fills in the field of a pod that joined its group by the label, or, without one, by a mark, with its rank;
// marks are read in their order.
func Adopt(pod *corev1.Pod, marks ...Marks) {
	if pod.Spec.SchedulingGroup != nil {
		return
	}
	if group := pod.Labels[Label]; group != "" {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		return
	}
	for _, read := range marks {
		member, marked := read(pod)
		if !marked {
			continue
		}
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &member.Group}
		if _, has := pod.Annotations[AnnotationRank]; member.Rank != nil && !has {
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			pod.Annotations[AnnotationRank] = strconv.Itoa(*member.Rank)
		}
		return
	}
}
