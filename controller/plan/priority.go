package plan

import (
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// NamedPriorityClass is the class that a job, or else its runtime, names by annotation; empty for none.
func NamedPriorityClass(job *trainerv1alpha1.TrainJob, runtime Runtime) string {
	d := &draft{job: job, runtime: runtime}
	_, d.annotations = metadata(runtime.Spec.Template, job.Spec.RuntimePatches)
	return d.jobWish(topology.AnnotationPriorityClass)
}

// prioritize gives all pods of the job the class that it names. Its gangs take theirs from their pods, since the API
// server wants both to be the same; so do groups of other schedulers.
func (d *draft) prioritize() {
	class := d.jobWish(topology.AnnotationPriorityClass)
	if class == "" {
		return
	}
	for i := range d.spec.ReplicatedJobs {
		pod := &d.spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		pod.PriorityClassName, pod.Priority = class, nil // the API server fills in the number
	}
}
