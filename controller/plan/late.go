package plan

import (
	"encoding/json"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// announce returns the value of topology.AnnotationLateMembers for the pods of late members: the fields that the
// scheduler needs to hold places for them, and the labels that identify them on arrival.
func (d *draft) announce(late []int) (string, *field.Error) {
	if fault := d.tooLate(late); fault != nil {
		return "", fault
	}
	var pods []corev1.PodTemplateSpec
	for _, i := range late {
		replicated := d.spec.ReplicatedJobs[i]
		for replica := range max(1, replicated.Replicas) {
			for pod := range d.podsPerJob(i) {
				pods = append(pods, corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{
						Name: fmt.Sprintf("%s-%s-%d-%d", d.job.Name, replicated.Name, replica, pod),
						Labels: map[string]string{
							jobsetv1alpha2.ReplicatedJobNameKey:  replicated.Name,
							jobsetv1alpha2.JobIndexKey:           strconv.Itoa(int(replica)),
							batchv1.JobCompletionIndexAnnotation: strconv.Itoa(int(pod)),
						},
					},
					Spec: needs(replicated.Template.Spec.Template.Spec),
				})
			}
		}
	}
	if len(pods) == 0 {
		return "", nil
	}
	text, err := json.Marshal(pods)
	if err != nil {
		return "", field.InternalError(runtimePath(), fmt.Errorf("printing the late members: %w", err))
	}
	if len(text) > maxAnnounced {
		return "", field.Invalid(runtimePath(), d.runtime.Name, fmt.Sprintf(
			"what is to be announced of the %d pods that wait until others are ready has %d bytes; there may be %d",
			len(pods), len(text), maxAnnounced))
	}
	return string(text), nil
}

// needs returns the fields of a pod that decide on its nodes.
func needs(pod corev1.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, Overhead: pod.Overhead}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil {
		out.Affinity = &corev1.Affinity{NodeAffinity: pod.Affinity.NodeAffinity}
	}
	for _, c := range pod.InitContainers {
		out.InitContainers = append(out.InitContainers,
			corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range pod.Containers {
		out.Containers = append(out.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	return out
}
