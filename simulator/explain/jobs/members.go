package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/topology"
)

// class holds the effect of a PriorityClass on pods.
type class struct {
	priority *int32
	preempts *corev1.PreemptionPolicy
}

// class resolves the name of a PriorityClass as admission does: without one, the global default counts.
func (c *Cluster) class(name string) (class, error) {
	var names []string
	var fallback *schedulingv1.PriorityClass
	for _, known := range c.snapshot.PriorityClasses {
		if known.Name == name {
			return class{new(known.Value), known.PreemptionPolicy}, nil
		}
		if known.GlobalDefault && (fallback == nil || known.Value < fallback.Value) {
			fallback = known
		}
		names = append(names, known.Name)
	}
	switch {
	case name != "":
		return class{}, fmt.Errorf("there is no PriorityClass %s; there are: %s", name, strings.Join(names, ", "))
	case fallback != nil:
		return class{new(fallback.Value), fallback.PreemptionPolicy}, nil
	}
	return class{priority: new(int32(0))}, nil
}

// lateJobs are the ReplicatedJobs whose pods are created when the others run.
func lateJobs(group *schedulingv1beta1.PodGroup) (map[string]bool, error) {
	text := group.Annotations[topology.AnnotationLateMembers]
	if text == "" {
		return nil, nil
	}
	var announced []corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(text), &announced); err != nil {
		return nil, fmt.Errorf("reading annotation %s: %w", topology.AnnotationLateMembers, err)
	}
	late := make(map[string]bool)
	for _, template := range announced {
		late[template.Labels[jobsetv1alpha2.ReplicatedJobNameKey]] = true
	}
	return late, nil
}

// pods are those of a ReplicatedJob, with the names and labels by which JobSet and Job identify them. Real names end in
// five random letters.
func pods(jobSet *jobsetv1alpha2.JobSet, replicated jobsetv1alpha2.ReplicatedJob) []*corev1.Pod {
	var all []*corev1.Pod
	template := replicated.Template.Spec.Template
	for replica := range max(1, replicated.Replicas) {
		job := fmt.Sprintf("%s-%s-%d", jobSet.Name, replicated.Name, replica)
		for index := range ptr.Deref(replicated.Template.Spec.Parallelism, 1) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace:   jobSet.Namespace,
					Name:        fmt.Sprintf("%s-%d", job, index),
					Labels:      maps.Clone(template.Labels),
					Annotations: maps.Clone(template.Annotations),
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "batch/v1", Kind: "Job", Name: job, Controller: new(true)},
					},
				},
				Spec: *template.Spec.DeepCopy(),
			}
			pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
			if pod.Labels == nil {
				pod.Labels = make(map[string]string)
			}
			maps.Copy(pod.Labels, map[string]string{
				jobsetv1alpha2.JobSetNameKey: jobSet.Name, jobsetv1alpha2.ReplicatedJobNameKey: replicated.Name,
				jobsetv1alpha2.JobIndexKey: strconv.Itoa(int(replica)), batchv1.JobNameLabel: job,
				batchv1.JobCompletionIndexAnnotation: strconv.Itoa(int(index)),
			})
			if pod.Spec.SchedulerName == "" {
				pod.Spec.SchedulerName = corev1.DefaultSchedulerName
			}
			requestLimits(&pod.Spec)
			all = append(all, pod)
		}
	}
	return all
}

// requestLimits sets the requests of containers to their limits where they request nothing, as the API server does.
func requestLimits(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, said := r.Requests[name]; said {
					continue
				}
				if r.Requests == nil {
					r.Requests = make(corev1.ResourceList)
				}
				r.Requests[name] = limit
			}
		}
	}
}
