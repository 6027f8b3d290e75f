package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// validateInitializers checks that the runtime has the initializers that the job configures. The job's patches may
// bring the mount.
func (d *draft) validateInitializers() field.ErrorList {
	job := d.job
	if job.Spec.Initializer == nil {
		return nil
	}
	var faults []*field.Error
	if dataset := job.Spec.Initializer.Dataset; dataset != nil {
		// Upstream asks for the mount here too, and so refuses every job of its own runtime with a cache.
		container, fault := d.initializer(trainerv1alpha1.DatasetInitializerName, "datasetConfig")
		if fault == nil && !d.streamed() {
			fault = checkMount(d.runtime, container)
		}
		faults = append(faults, fault)
	}
	if job.Spec.Initializer.Model != nil {
		container, fault := d.initializer(trainerv1alpha1.ModelInitializerName, "modelConfig")
		if fault == nil {
			fault = checkMount(d.runtime, container)
		}
		faults = append(faults, fault)
	}
	return slices.DeleteFunc(faults, func(fault *field.Error) bool { return fault == nil })
}

// initializer is the container called name of the ReplicatedJob called name.
func (d *draft) initializer(name, input string) (*corev1.Container, *field.Error) {
	jobs := d.spec.ReplicatedJobs
	i := position(jobs, name)
	if i < 0 {
		return nil, field.Invalid(runtimePath(), d.runtime.Name,
			fmt.Sprintf("must have %s job when trainJob is configured with input %s", name, input))
	}
	container := mainContainer(&jobs[i], name)
	if container == nil {
		return nil, field.Invalid(runtimePath(), d.runtime.Name,
			fmt.Sprintf("must have container with name - %s in the %s job", name, name))
	}
	return container, nil
}

// checkMount wants the initializer to mount the volume that the trainer reads from.
func checkMount(runtime Runtime, container *corev1.Container) *field.Error {
	mounted := slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return mount.Name == trainerv1alpha1.InitializerVolumeName
	})
	if mounted {
		return nil
	}
	return field.Invalid(runtimePath(), runtime.Name, fmt.Sprintf(
		"must have volumeMount with name - %s in container %s of the %s job",
		trainerv1alpha1.InitializerVolumeName, container.Name, container.Name))
}
