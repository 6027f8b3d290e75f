package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	coschedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcanov1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// podGroupKind is the kind of a gang in both of them, as in Kubernetes.
const podGroupKind = "PodGroup"

// coschedulingTimeout is upstream's default, which is missing where no API server put it.
const coschedulingTimeout int32 = 60

// foreignPolicy is the runtime's wish to have its pods grouped for another gang scheduler; nil if it has none.
func foreignPolicy(runtime Runtime) *trainerv1alpha1.PodGroupPolicySource {
	policy := runtime.Spec.PodGroupPolicy
	if policy == nil || policy.Coscheduling == nil && policy.Volcano == nil {
		return nil
	}
	return &policy.PodGroupPolicySource
}

// checkForeign refuses pods that would be in two groups, and a group that Volcano could not queue.
func (d *draft) checkForeign() field.ErrorList {
	policy := foreignPolicy(d.runtime)
	if policy == nil {
		return nil
	}
	var faults field.ErrorList
	if policy.Coscheduling != nil && policy.Volcano != nil {
		faults = append(faults, field.Invalid(runtimePath(), d.runtime.Name,
			"podGroupPolicy names both coscheduling and volcano, and a pod has one scheduler; leave one out"))
	}
	if d.jobWish(topology.AnnotationGang) == gangOn {
		faults = append(faults, field.Forbidden(annotationPath(topology.AnnotationGang),
			"the runtime's podGroupPolicy groups the pods for another scheduler; leave one of them out"))
	}
	if queue, ok := d.annotations[volcanov1beta1.QueueNameAnnotationKey]; ok && queue == "" && policy.Volcano != nil {
		faults = append(
			faults,
			field.Invalid(field.NewPath("spec", "annotations").Key(volcanov1beta1.QueueNameAnnotationKey),
				queue, "Volcano queue name must not be empty"),
		)
	}
	return faults
}

// PriorityClass is the class that a job's Volcano group names and that must exist for it to be queued; empty for none.
func PriorityClass(job *trainerv1alpha1.TrainJob, runtime Runtime) string {
	policy := foreignPolicy(runtime)
	spec, err := patched(runtime.Spec.Template.Spec, job.Spec.RuntimePatches)
	if policy == nil || policy.Volcano == nil || err != nil {
		return ""
	}
	return lastPriorityClass(spec)
}

// lastPriorityClass is the last that a pod template names: upstream's rule.
func lastPriorityClass(spec jobsetv1alpha2.JobSetSpec) string {
	name := ""
	for _, replicated := range spec.ReplicatedJobs {
		if own := replicated.Template.Spec.Template.Spec.PriorityClassName; own != "" {
			name = own
		}
	}
	return name
}

// joinForeign puts the pods of a rendered JobSet into the group of another scheduler's, and returns that group; nil
// without a policy. In the group are the pods that start together: upstream counts initializers too, and waits for them
// for ever.
func (d *draft) joinForeign(spec *jobsetv1alpha2.JobSetSpec) (*unstructured.Unstructured, error) {
	policy := foreignPolicy(d.runtime)
	if policy == nil {
		return nil, nil //nolint:nilnil // no group is a normal answer
	}
	members, late, count := d.together(nil)
	for i := range spec.ReplicatedJobs {
		if !slices.Contains(members, spec.ReplicatedJobs[i].Name) {
			continue
		}
		pod := &spec.ReplicatedJobs[i].Template.Spec.Template
		if policy.Coscheduling != nil {
			pod.Labels = overlay(pod.Labels, map[string]string{coschedulingv1alpha1.PodGroupLabel: d.job.Name})
		} else {
			pod.Annotations = overlay(
				pod.Annotations,
				map[string]string{volcanov1beta1.KubeGroupNameAnnotationKey: d.job.Name},
			)
		}
	}
	requests := d.requests(*spec, members, late)
	if policy.Coscheduling != nil {
		return Applicable(d.coscheduling(*policy.Coscheduling, count, requests))
	}
	return Applicable(d.volcano(*policy.Volcano, count, requests, lastPriorityClass(*spec)))
}

// ForeignKind is the kind of the group that a JobSet's pods name for another gang scheduler; ok is false if they name
// none.
func ForeignKind(jobSet *jobsetv1alpha2.JobSet) (kind schema.GroupVersionKind, ok bool) {
	for _, replicated := range jobSet.Spec.ReplicatedJobs {
		pod := replicated.Template.Spec.Template
		switch jobSet.Name {
		case pod.Labels[coschedulingv1alpha1.PodGroupLabel]:
			return coschedulingv1alpha1.SchemeGroupVersion.WithKind(podGroupKind), true
		case pod.Annotations[volcanov1beta1.KubeGroupNameAnnotationKey]:
			return volcanov1beta1.SchemeGroupVersion.WithKind(podGroupKind), true
		}
	}
	return schema.GroupVersionKind{}, false
}

// requests returns the joint requests of the members that start first.
func (d *draft) requests(spec jobsetv1alpha2.JobSetSpec, members []string, late []int) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i, replicated := range spec.ReplicatedJobs {
		if !slices.Contains(members, replicated.Name) || slices.Contains(late, i) {
			continue
		}
		pod := requesting(replicated.Template.Spec.Template.Spec)
		pods := int64(d.pods(i))
		for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			sum := total[name]
			quantity.Mul(pods)
			sum.Add(quantity)
			total[name] = sum
		}
	}
	return total
}

// requesting is a pod as the API server will have it: a container that limits a resource and does not request it
// requests its limit.
func requesting(spec corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = mergeQuantities(resources.Limits, resources.Requests)
		}
	}
	return pod
}

func (d *draft) coscheduling(
	policy trainerv1alpha1.CoschedulingPodGroupPolicySource, count int32, requests corev1.ResourceList,
) runtime.Object {
	timeout := policy.ScheduleTimeoutSeconds
	if timeout == nil {
		timeout = new(coschedulingTimeout)
	}
	return &coschedulingv1alpha1.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: coschedulingv1alpha1.SchemeGroupVersion.String(), Kind: podGroupKind},
		ObjectMeta: d.groupMeta(),
		Spec: coschedulingv1alpha1.PodGroupSpec{
			MinMember: count, MinResources: requests, ScheduleTimeoutSeconds: new(*timeout),
		},
	}
}

func (d *draft) volcano(
	policy trainerv1alpha1.VolcanoPodGroupPolicySource, count int32, requests corev1.ResourceList, class string,
) runtime.Object {
	group := &volcanov1beta1.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: volcanov1beta1.SchemeGroupVersion.String(), Kind: podGroupKind},
		ObjectMeta: d.groupMeta(),
		Spec: volcanov1beta1.PodGroupSpec{
			MinMember: count, MinResources: &requests, PriorityClassName: class,
			Queue: d.annotations[volcanov1beta1.QueueNameAnnotationKey],
		},
	}
	if near := policy.NetworkTopology; near != nil {
		group.Spec.NetworkTopology = &volcanov1beta1.NetworkTopologySpec{
			Mode: volcanov1beta1.NetworkTopologyMode(near.Mode), HighestTierAllowed: clone(near.HighestTierAllowed),
		}
	}
	return group
}

func (d *draft) groupMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: d.job.Name, Namespace: d.job.Namespace, OwnerReferences: Owners(d.job)}
}
