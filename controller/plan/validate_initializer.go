package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// validateInitializers checks that the runtime has what the job configures.
func validateInitializers(job *trainerv1alpha1.TrainJob, runtime Runtime) field.ErrorList {
	if job.Spec.Initializer == nil {
		return nil
	}
	var faults field.ErrorList
	if job.Spec.Initializer.Dataset != nil {
		faults = validateInitializer(runtime, trainerv1alpha1.DatasetInitializerName, "datasetConfig")
	}
	if job.Spec.Initializer.Model != nil {
		more := validateInitializer(runtime, trainerv1alpha1.ModelInitializerName, "modelConfig")
		faults = append(faults, more...)
	}
	return faults
}

// validateInitializer wants a ReplicatedJob called name, with a container called name, which mounts the volume that
// the trainer reads from.
func validateInitializer(runtime Runtime, name, input string) field.ErrorList {
	refuse := func(format string, arguments ...any) field.ErrorList {
		return field.ErrorList{field.Invalid(runtimePath(), runtime.Name, fmt.Sprintf(format, arguments...))}
	}
	jobs := runtime.Spec.Template.Spec.ReplicatedJobs
	i := position(jobs, name)
	if i < 0 {
		return refuse("must have %s job when trainJob is configured with input %s", name, input)
	}
	container := mainContainer(&jobs[i], name)
	if container == nil {
		return refuse("must have container with name - %s in the %s job", name, name)
	}
	mounted := slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return mount.Name == trainerv1alpha1.InitializerVolumeName
	})
	if !mounted {
		return refuse("must have volumeMount with name - %s in container %s of the %s job",
			trainerv1alpha1.InitializerVolumeName, name, name)
	}
	return nil
}
