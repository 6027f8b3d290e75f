package plan

import (
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Within returns the plan of a job whose pods an existing JobSet created: without the groups and the ComputeDomain that
// none of these pods is in. A gang without pods would wait for ever.
func (p Plan) Within(jobSet *jobsetv1alpha2.JobSet) Plan {
	if p.ComputeDomain != nil && !inDomain(jobSet) {
		p.ComputeDomain = nil
	}
	named := GroupsOf(jobSet)
	all := p.PodGroups
	p.PodGroups = nil
	p.Claims = slices.DeleteFunc(slices.Clone(p.Claims), func(claim SharedClaim) bool {
		return !slices.Contains(named, claim.Group)
	})
	var kept []int
	for i, group := range all {
		if slices.Contains(named, group.Name) {
			p.PodGroups = append(p.PodGroups, group)
			kept = append(kept, i)
		}
	}
	p.Workload = withTemplates(p.Workload, kept)
	return p
}

// withTemplates returns a Workload with some of its templates; nil if none is left.
func withTemplates(workload *schedulingv1beta1.Workload, kept []int) *schedulingv1beta1.Workload {
	if workload == nil || len(kept) == 0 {
		return nil
	}
	all := workload.Spec.PodGroupTemplates
	workload = workload.DeepCopy()
	workload.Spec.PodGroupTemplates = nil
	for _, i := range kept {
		workload.Spec.PodGroupTemplates = append(workload.Spec.PodGroupTemplates, all[i])
	}
	return workload
}

// GroupsOf returns the names of the PodGroups in which the pods of a JobSet are; none without a JobSet.
func GroupsOf(jobSet *jobsetv1alpha2.JobSet) []string {
	if jobSet == nil {
		return nil
	}
	var names []string
	for i := range jobSet.Spec.ReplicatedJobs {
		if name := GroupOf(&jobSet.Spec.ReplicatedJobs[i]); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// GroupOf returns the name of the PodGroup of a ReplicatedJob's pods, "" for none.
func GroupOf(replicated *jobsetv1alpha2.ReplicatedJob) string {
	template := replicated.Template.Spec.Template
	return gangapi.GroupOf(template.ObjectMeta, template.Spec)
}
