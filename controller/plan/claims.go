package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// mergeClaims adds the job's claims to the pods of the nodes and to their main containers, which also get
// resourcesPerNode. A claim of the runtime's of the same name is replaced in its place. A container that names the
// claim already has chosen its part of it.
func mergeClaims(spec *jobsetv1alpha2.JobSetSpec, claims []trainerv1alpha1.ResourceClaimPerNode, companion string) {
	for i := range spec.ReplicatedJobs {
		container := nodeContainer(&spec.ReplicatedJobs[i], companion)
		if container == nil {
			continue
		}
		pod := &spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		for _, claim := range claims {
			pod.ResourceClaims = upsert(pod.ResourceClaims, corev1.PodResourceClaim{
				Name:                      claim.Name,
				ResourceClaimName:         clone(claim.ResourceClaimName),
				ResourceClaimTemplateName: clone(claim.ResourceClaimTemplateName),
			}, func(own corev1.PodResourceClaim) bool { return own.Name == claim.Name })
			named := func(own corev1.ResourceClaim) bool { return own.Name == claim.Name }
			if !slices.ContainsFunc(container.Resources.Claims, named) {
				container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: claim.Name})
			}
		}
	}
}

// nodeContainer returns the container that gets the job's resources per node, or nil: the main one of the trainer's
// ReplicatedJob, and of its companion.
func nodeContainer(replicated *jobsetv1alpha2.ReplicatedJob, companion string) *corev1.Container {
	if ancestor(*replicated) != trainerv1alpha1.AncestorTrainer && (companion == "" || replicated.Name != companion) {
		return nil
	}
	return mainContainer(replicated, trainerv1alpha1.NodeName)
}

// checkClaims refuses claims that no pod would get, that do not state their kind, or that Kueue would not count.
func (d *draft) checkClaims() field.ErrorList {
	claims := trainerOf(d.job).ResourceClaimsPerNode
	if len(claims) == 0 {
		return nil
	}
	path := field.NewPath("spec", "trainer", "resourceClaimsPerNode")
	var faults field.ErrorList
	seen := map[string]bool{}
	for i, claim := range claims {
		if seen[claim.Name] {
			faults = append(faults, field.Duplicate(path.Index(i).Child("name"), claim.Name))
		}
		seen[claim.Name] = true
		if (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil) {
			faults = append(faults, field.Invalid(path.Index(i), claim.Name,
				"must have exactly one of resourceClaimName and resourceClaimTemplateName"))
		}
	}
	if queue := d.job.Labels[KueueQueueLabel]; queue != "" {
		faults = append(faults, field.Invalid(path, claims[0].Name, fmt.Sprintf(
			"the job is queued by Kueue (label %s is %s), which does not know the field and would count no devices; put the claims "+
				"into the pods of a runtime, or ask for the extended resource of their class in resourcesPerNode",
			KueueQueueLabel,
			queue,
		)))
	}
	gets := func(replicated jobsetv1alpha2.ReplicatedJob) bool {
		return nodeContainer(&replicated, companion(policyOf(d.runtime))) != nil
	}
	if !slices.ContainsFunc(d.spec.ReplicatedJobs, gets) {
		faults = append(faults, field.Invalid(path, claims[0].Name, fmt.Sprintf(
			"runtime %s has no container %s that trains and could use the devices",
			d.runtime.Name,
			trainerv1alpha1.NodeName,
		)))
	}
	return faults
}
