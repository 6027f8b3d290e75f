package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// channelClaim is the name of a pod's claim for its channel, the one in NVIDIA's examples: a runtime that wires a
// ComputeDomain itself is noticed by it.
const channelClaim = "compute-domain-channel"

// ComputeDomainKind is the kind with which NVIDIA's DRA driver connects nodes by NVLink.
func ComputeDomainKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "resource.nvidia.com", Version: "v1beta1", Kind: "ComputeDomain"}
}

// ChannelTemplate is the name of the claim template that NVIDIA's controller makes for the ComputeDomain of a TrainJob.
func ChannelTemplate(job *trainerv1alpha1.TrainJob) string { return job.Name + "-channel" }

// inDomain reports whether pods of a JobSet have channels of a ComputeDomain that its plan made. Pod templates are
// immutable, so a job that was queued without a domain does not get one.
func inDomain(jobSet *jobsetv1alpha2.JobSet) bool {
	return slices.ContainsFunc(jobSet.Spec.ReplicatedJobs, func(replicated jobsetv1alpha2.ReplicatedJob) bool {
		return slices.ContainsFunc(
			replicated.Template.Spec.Template.Spec.ResourceClaims,
			isChannel(jobSet.Name+"-channel"),
		)
	})
}

func isChannel(template string) func(corev1.PodResourceClaim) bool {
	return func(claim corev1.PodResourceClaim) bool {
		return claim.Name == channelClaim && claim.ResourceClaimTemplateName != nil &&
			*claim.ResourceClaimTemplateName == template
	}
}

// domain is the ComputeDomain of the job. It has no number of nodes: those that hold a channel are its nodes, and a
// number would only hold up pods until as many are there.
func (d *draft) domain() *unstructured.Unstructured {
	domain := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"numNodes": int64(0),
			"channel": map[string]any{
				"resourceClaimTemplate": map[string]any{"name": ChannelTemplate(d.job)},
				"allocationMode":        "Single",
			},
		},
	}}
	domain.SetGroupVersionKind(ComputeDomainKind())
	meta := d.groupMeta()
	domain.SetName(meta.Name)
	domain.SetNamespace(meta.Namespace)
	domain.SetOwnerReferences(meta.OwnerReferences)
	return domain
}

// joinDomain gives the pods that train by NVLink their channel, and lets NCCL use it unless the user has decided that.
func (d *draft) joinDomain(spec *jobsetv1alpha2.JobSetSpec) *unstructured.Unstructured {
	for _, g := range d.gangs {
		for _, name := range g.channels {
			pod := &spec.ReplicatedJobs[position(spec.ReplicatedJobs, name)].Template.Spec.Template.Spec
			holders := gpuContainers(*pod)
			pod.ResourceClaims = append(pod.ResourceClaims, corev1.PodResourceClaim{
				Name: channelClaim, ResourceClaimTemplateName: new(ChannelTemplate(d.job)),
			})
			for _, i := range holders {
				container := &pod.Containers[i]
				container.Resources.Claims = append(
					container.Resources.Claims,
					corev1.ResourceClaim{Name: channelClaim},
				)
				container.Env = withDefaults(container.Env, "NCCL_MNNVL_ENABLE", "NCCL_CUMEM_ENABLE")
			}
		}
	}
	return d.domain()
}

// withDefaults switches on the named variables that are not set.
func withDefaults(env []corev1.EnvVar, names ...string) []corev1.EnvVar {
	for _, name := range names {
		if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == name }) {
			env = append(env, corev1.EnvVar{Name: name, Value: "1"})
		}
	}
	return env
}
