package plan

import (
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Within returns the plan of a job whose pods were made by a JobSet already: without the groups and the ComputeDomain that none
// of these pods is in. A gang of which no pod exists would wait for ever.
func (p Plan) Within(jobSet *jobsetv1alpha2.JobSet) Plan {
	if p.ComputeDomain != nil && !inDomain(jobSet) {
		p.ComputeDomain = nil
	}
	if p.Workload == nil {
		return p
	}
	named := GroupsOf(jobSet)
	all := p.PodGroups
	p.PodGroups = nil
	workload := p.Workload.DeepCopy()
	workload.Spec.PodGroupTemplates = nil
	for i, group := range all {
		if slices.Contains(named, group.Name) {
			p.PodGroups = append(p.PodGroups, group)
			workload.Spec.PodGroupTemplates = append(
				workload.Spec.PodGroupTemplates,
				p.Workload.Spec.PodGroupTemplates[i],
			)
		}
	}
	p.Workload = workload
	if len(p.PodGroups) == 0 {
		p.Workload = nil
	}
	return p
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
	if of := replicated.Template.Spec.Template.Spec.SchedulingGroup; of != nil && of.PodGroupName != nil {
		return *of.PodGroupName
	}
	return ""
}
