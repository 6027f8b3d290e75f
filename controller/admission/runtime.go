package admission

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// largestRuntime bounds the JSON of a runtime in bytes. Each of its jobs has a copy in a FrozenTrainJob, and etcd
// refuses objects of more than 1.5 MiB.
const largestRuntime = 1 << 20

// checkSize refuses a runtime that no job could freeze.
func checkSize(meta metav1.ObjectMeta, spec trainerv1alpha1.TrainingRuntimeSpec) field.ErrorList {
	meta.ManagedFields = nil // they are not frozen
	text, err := json.Marshal(trainerv1alpha1.TrainingRuntime{ObjectMeta: meta, Spec: spec})
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	if len(text) <= largestRuntime {
		return nil
	}
	fault := field.TooLong(field.NewPath("spec"), "", largestRuntime)
	fault.Detail += " as JSON, because each of its jobs keeps a copy; move files into a volume or an image"
	return field.ErrorList{fault}
}

// CheckRuntime returns the faults of a runtime of either kind, for any job that uses it.
func CheckRuntime(meta metav1.ObjectMeta, spec trainerv1alpha1.TrainingRuntimeSpec) field.ErrorList {
	template := field.NewPath("spec", "template")
	jobs := template.Child("spec", "replicatedJobs")
	faults := checkSize(meta, spec)
	for i, job := range spec.Template.Spec.ReplicatedJobs {
		faults = append(faults, checkStep(jobs.Index(i), job, spec)...)
	}
	faults = append(faults, plan.ValidateAnnotations(meta.Annotations, field.NewPath("metadata"))...)
	faults = append(faults, plan.ValidateAnnotations(spec.Template.Annotations, template.Child("metadata"))...)
	for i, job := range spec.Template.Spec.ReplicatedJobs {
		wishes := map[string]string{}
		for key, value := range job.Template.Spec.Template.Annotations {
			if plan.IsWish(key) { // nothing else is read there
				wishes[key] = value
			}
		}
		at := jobs.Index(i).Child("template", "spec", "template", "metadata")
		faults = append(faults, plan.ValidateAnnotations(wishes, at)...)
	}
	return faults
}

// hasSlices reports whether the trainer of a runtime may be several Jobs, one for each slice.
func hasSlices(spec trainerv1alpha1.TrainingRuntimeSpec) bool {
	if spec.MLPolicy == nil {
		return false
	}
	_, ok := framework.Select(spec.MLPolicy.MLPolicySource, nil).(framework.Sliced)
	return ok
}

// checkStep checks a ReplicatedJob that runs a step of TrainJobs: it has the container that jobs change, and is one Job
// unless it is a trainer with slices.
func checkStep(
	at *field.Path,
	job jobsetv1alpha2.ReplicatedJob,
	spec trainerv1alpha1.TrainingRuntimeSpec,
) field.ErrorList {
	step := job.Template.Labels[trainerv1alpha1.LabelAncestor]
	container := step
	switch step {
	case trainerv1alpha1.AncestorTrainer:
		container = trainerv1alpha1.NodeName
	case trainerv1alpha1.AncestorDatasetInitializer, trainerv1alpha1.AncestorModelInitializer:
	default:
		return nil
	}
	var faults field.ErrorList
	if job.Replicas != 1 && (!hasSlices(spec) || step != trainerv1alpha1.AncestorTrainer || job.Replicas < 1) {
		faults = append(faults, field.Invalid(at.Child("replicas"), job.Replicas, "always must be 1"))
	}
	containers := job.Template.Spec.Template.Spec.Containers
	if !slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == container }) {
		var names []string
		for _, c := range containers {
			names = append(names, c.Name)
		}
		faults = append(faults, field.Invalid(at.Child("template", "spec", "template", "spec", "containers"),
			fmt.Sprint(names), "must contain the required container for the ancestor: "+step))
	}
	return faults
}

// JudgeRuntime judges a new TrainingRuntime. Changes of one are admitted without a look, as upstream does.
func JudgeRuntime(runtime *trainerv1alpha1.TrainingRuntime) Verdict {
	return Verdict{Refusal: CheckRuntime(runtime.ObjectMeta, runtime.Spec).ToAggregate()}
}

// JudgeClusterRuntime judges a ClusterTrainingRuntime, old nil if it is new. A change that is none of the spec or the
// annotations is admitted, and so is every change of one that is being deleted.
func JudgeClusterRuntime(old, next *trainerv1alpha1.ClusterTrainingRuntime) Verdict {
	if old != nil {
		unchanged := equality.Semantic.DeepEqual(old.Spec, next.Spec) &&
			equality.Semantic.DeepEqual(old.Annotations, next.Annotations)
		if unchanged || next.DeletionTimestamp != nil {
			return Verdict{}
		}
	}
	verdict := Verdict{Refusal: CheckRuntime(next.ObjectMeta, next.Spec).ToAggregate()}
	if old == nil && next.Labels[trainerv1alpha1.LabelSupport] == trainerv1alpha1.SupportDeprecated {
		verdict.Warnings = []string{deprecation(next.Name)}
	}
	return verdict
}
