package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// KueueManager is the manager of the runtime patch with which Kueue admits a job.
const KueueManager = "kueue.x-k8s.io/manager"

// KueueQueueLabel is the label on a job that names the queue in which Kueue has it.
const KueueQueueLabel = "kueue.x-k8s.io/queue-name"

// Kueue's annotations on pod templates, in which its users have already stated their placement wishes.
const (
	kueueRequired   = "kueue.x-k8s.io/podset-required-topology"
	kueuePreferred  = "kueue.x-k8s.io/podset-preferred-topology"
	kueueSliceLevel = "kueue.x-k8s.io/podset-slice-required-topology"
	kueueSliceSize  = "kueue.x-k8s.io/podset-slice-size"
)

// kueueWish returns a pod template's wish under Kueue's counterpart of one of our keys. Kueue refuses podsets that
// slices do not divide, so its segments are equal.
func kueueWish(template corev1.PodTemplateSpec, key string) (value string, ok bool) {
	spelling := map[string]string{
		topology.AnnotationRequiredTopology:  kueueRequired,
		topology.AnnotationPreferredTopology: kueuePreferred,
		topology.AnnotationSegmentTopology:   kueueSliceLevel,
		topology.AnnotationSegmentSize:       kueueSliceSize,
	}[key]
	if key == topology.AnnotationSegmentEqual {
		_, ok = template.Annotations[kueueSliceSize]
		return "true", ok
	}
	value, ok = template.Annotations[spelling]
	return value, ok && spelling != ""
}

// keepTolerations returns Kueue's patch with the tolerations that the pods have already in front of its own. A merge
// replaces them whole, and the pods of an admitted job would no longer be placed on the nodes that the runtime
// requires.
func keepTolerations(
	patch *trainerv1alpha1.JobSetSpecPatch, has func(replicated string) []corev1.Toleration,
) *trainerv1alpha1.JobSetSpecPatch {
	kept := patch.DeepCopy()
	for i := range kept.ReplicatedJobs {
		pod := podPatch(kept.ReplicatedJobs[i])
		if pod == nil || len(pod.Tolerations) == 0 {
			continue
		}
		all := slices.Clone(has(kept.ReplicatedJobs[i].Name))
		for _, toleration := range pod.Tolerations {
			same := func(other corev1.Toleration) bool { return sameToleration(toleration, other) }
			if !slices.ContainsFunc(all, same) {
				all = append(all, toleration)
			}
		}
		pod.Tolerations = all
	}
	return kept
}

func sameToleration(a, b corev1.Toleration) bool {
	return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect &&
		ptr.Equal(a.TolerationSeconds, b.TolerationSeconds)
}

// podPatch is the part of a patch that is about pods; nil if there is none.
func podPatch(patch trainerv1alpha1.ReplicatedJobPatch) *trainerv1alpha1.PodSpecPatch {
	if patch.Template == nil || patch.Template.Spec == nil || patch.Template.Spec.Template == nil {
		return nil
	}
	return patch.Template.Spec.Template.Spec
}
