package plan

import (
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// addressed returns patches in the names of the runtime's containers. Kubeflow's guide to runtime patches calls the
// container that trains "trainer", and all shipped runtimes call it "node". It is meant where the ReplicatedJob trains
// and has no container of that name; a patch of both names is refused. The patches in spec do not change.
func addressed(
	patches []trainerv1alpha1.RuntimePatch, runtime jobsetv1alpha2.JobSetSpec,
) []trainerv1alpha1.RuntimePatch {
	out := slices.Clone(patches)
	for i := range out {
		template := templatePatch(out[i])
		if template == nil || template.Spec == nil {
			continue
		}
		for j := range template.Spec.ReplicatedJobs {
			at := trainerIn(template.Spec.ReplicatedJobs[j], runtime)
			if at < 0 {
				continue
			}
			out[i] = *out[i].DeepCopy()
			template = templatePatch(out[i])
			podPatch(template.Spec.ReplicatedJobs[j]).Containers[at].Name = trainerv1alpha1.NodeName
		}
	}
	return out
}

// trainerIn is the index of the container in a patch that means the runtime's training one by another name, or -1.
func trainerIn(patch trainerv1alpha1.ReplicatedJobPatch, runtime jobsetv1alpha2.JobSetSpec) int {
	at, pod := position(runtime.ReplicatedJobs, patch.Name), podPatch(patch)
	if at < 0 || pod == nil || ancestor(runtime.ReplicatedJobs[at]) != trainerv1alpha1.AncestorTrainer {
		return -1
	}
	have := runtime.ReplicatedJobs[at].Template.Spec.Template.Spec.Containers
	named := func(name string) int {
		return slices.IndexFunc(pod.Containers, func(c trainerv1alpha1.ContainerPatch) bool { return c.Name == name })
	}
	if contains(have, trainerv1alpha1.AncestorTrainer) || !contains(have, trainerv1alpha1.NodeName) ||
		named(trainerv1alpha1.NodeName) >= 0 {
		return -1
	}
	return named(trainerv1alpha1.AncestorTrainer)
}
