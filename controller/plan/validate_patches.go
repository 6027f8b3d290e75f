package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// validatePatches compares patches with the unpatched runtime: a merge adds missing entries, so the merged runtime
// would have all of them.
func validatePatches(patches []trainerv1alpha1.RuntimePatch, runtime Runtime) field.ErrorList {
	path := field.NewPath("spec", "runtimePatches")
	var faults field.ErrorList
	for _, patch := range addressed(patches, runtime.Spec.Template.Spec) {
		faults = append(faults, validation.IsDomainPrefixedPath(path.Child("manager"), patch.Manager)...)
		template := templatePatch(patch)
		if template == nil || template.Spec == nil {
			continue
		}
		for _, replicated := range template.Spec.ReplicatedJobs {
			faults = append(faults, validatePatchedJob(path, replicated, runtime)...)
		}
	}
	return faults
}

func validatePatchedJob(
	path *field.Path, patch trainerv1alpha1.ReplicatedJobPatch, runtime Runtime,
) field.ErrorList {
	jobs := runtime.Spec.Template.Spec.ReplicatedJobs
	i := position(jobs, patch.Name)
	if i < 0 {
		return field.ErrorList{field.Invalid(path, patch.Name,
			"must not have replicated job that doesn't exist in the runtime job template")}
	}
	want := podPatch(patch)
	if want == nil {
		return nil
	}
	have := jobs[i].Template.Spec.Template.Spec
	var faults field.ErrorList
	for _, container := range want.InitContainers {
		if !contains(have.InitContainers, container.Name) {
			faults = append(faults, field.Invalid(path, container.Name,
				"must not have initContainer that doesn't exist in the runtime job "+patch.Name))
		}
	}
	for _, container := range want.Containers {
		if !contains(have.Containers, container.Name) {
			faults = append(faults, field.Invalid(path, container.Name,
				"must not have container that doesn't exist in the runtime job "+patch.Name))
		}
		main := []string{
			trainerv1alpha1.DatasetInitializerName, trainerv1alpha1.ModelInitializerName, trainerv1alpha1.NodeName,
		}
		if slices.Contains(main, container.Name) && len(container.Env) > 0 {
			faults = append(faults, field.Invalid(path, container.Name,
				"must not have envs for the dataset-initializer, model-initializer, node containers"))
		}
	}
	return faults
}

func contains(containers []corev1.Container, name string) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == name })
}
