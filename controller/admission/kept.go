package admission

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// keptReason is the reason for refusing a change that would need another JobSet.
const keptReason = "cannot be modified: the job has run, its JobSet would have to be created again, and its volume claims would be deleted " +
	"with it; create another TrainJob"

// refuseKept refuses changes that the JobSet of a job does not take and for which it is not replaced, because its
// volume claims would be deleted with it. A change of the size back to that of the JobSet is admitted.
func (v *Validator) refuseKept(
	old, next *trainerv1alpha1.TrainJob, runtime plan.Runtime, jobSet *jobsetv1alpha2.JobSet,
) field.ErrorList {
	if !plan.LosesVolumes(jobSet) {
		return nil
	}
	faults := append(v.refuseSize(old, next, runtime, jobSet), refusePatches(old, next)...)
	if priorityChanged(old, next, runtime) {
		at := field.NewPath("metadata", "annotations").Key(topology.AnnotationPriorityClass)
		faults = append(faults, field.Forbidden(at, keptReason))
	}
	return faults
}

func (v *Validator) refuseSize(
	old, next *trainerv1alpha1.TrainJob, runtime plan.Runtime, jobSet *jobsetv1alpha2.JobSet,
) field.ErrorList {
	if !sizeChanged(old, next) {
		return nil
	}
	var faults field.ErrorList
	was, is, at := old.Spec.Trainer, next.Spec.Trainer, field.NewPath("spec", "trainer")
	if !ptr.Equal(was.NumNodes, is.NumNodes) {
		planned, err := plan.New(next, runtime, v.Options)
		if err != nil || !plan.SameSize(planned.JobSet, jobSet) {
			faults = append(faults, field.Forbidden(at.Child("numNodes"), keptReason))
		}
	}
	if !equality.Semantic.DeepEqual(was.ResourcesPerNode, is.ResourcesPerNode) {
		faults = append(faults, field.Forbidden(at.Child("resourcesPerNode"), keptReason))
	}
	return faults
}

// refusePatches refuses changes of runtime patches, except in the fields that a suspended JobSet permits to change.
func refusePatches(old, next *trainerv1alpha1.TrainJob) field.ErrorList {
	before, after := fixedParts(old), fixedParts(next)
	var faults field.ErrorList
	for _, key := range after.keys {
		if part, had := before.parts[key]; !had || !reflect.DeepEqual(part.value, after.parts[key].value) {
			faults = append(faults, field.Forbidden(after.parts[key].path, keptReason))
		}
	}
	for _, key := range before.keys {
		if _, has := after.parts[key]; !has {
			faults = append(faults, field.Forbidden(before.parts[key].path, keptReason))
		}
	}
	return faults
}

// patchedParts are the parts of runtime patches that JobSet does not let change, by manager, ReplicatedJob and field.
type patchedParts struct {
	// keys are in the order of the patches.
	keys  []string
	parts map[string]patchedPart
}

// patchedPart is one field of a patch.
type patchedPart struct {
	path *field.Path
	// value is as JSON has it.
	value any
}

func (p *patchedParts) add(key string, path *field.Path, value any) {
	text, err := json.Marshal(value)
	var decoded any
	if err != nil || json.Unmarshal(text, &decoded) != nil || decoded == nil {
		return
	}
	if _, known := p.parts[key]; !known {
		p.keys = append(p.keys, key)
	}
	p.parts[key] = patchedPart{path, decoded}
}

func fixedParts(job *trainerv1alpha1.TrainJob) patchedParts {
	found := patchedParts{parts: map[string]patchedPart{}}
	for i, patch := range job.Spec.RuntimePatches {
		if patch.TrainingRuntimeSpec == nil || patch.TrainingRuntimeSpec.Template == nil ||
			patch.TrainingRuntimeSpec.Template.Spec == nil {
			continue
		}
		jobs := field.NewPath("spec", "runtimePatches").Index(i).
			Child("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
		for j, replicated := range patch.TrainingRuntimeSpec.Template.Spec.ReplicatedJobs {
			found.addJob(patch.Manager+"\n"+replicated.Name+"\n", jobs.Index(j).Child("template"), replicated.Template)
		}
	}
	return found
}

// addJob adds the immutable parts of a patch of a ReplicatedJob: the metadata of its Jobs, and its pods' spec without
// the mutable fields.
func (p *patchedParts) addJob(key string, at *field.Path, job *trainerv1alpha1.JobTemplatePatch) {
	if job == nil {
		return
	}
	if job.Metadata != nil {
		p.add(key+"metadata", at.Child("metadata"), job.Metadata)
	}
	if job.Spec == nil || job.Spec.Template == nil || job.Spec.Template.Spec == nil {
		return
	}
	text, err := json.Marshal(job.Spec.Template.Spec)
	var pods map[string]any
	if err != nil || json.Unmarshal(text, &pods) != nil {
		return // it was decoded from JSON
	}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if !slices.Contains([]string{"nodeSelector", "tolerations", "schedulingGates"}, name) {
			p.add(key+"spec."+name, at.Child("spec", "template", "spec", name), pods[name])
		}
	}
}
