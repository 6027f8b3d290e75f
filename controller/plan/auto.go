package plan

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/topology"
)

// AutoManager is the manager of the runtime patch for automatic resources.
const AutoManager = "lockstep.dev/auto-resources"

// Filled completes a job with automatic resources.
type Filled struct {
	// Nodes is the job's numNodes, Resources all of its resourcesPerNode.
	Nodes     int32
	Resources corev1.ResourceRequirements
	// Patch records their computation, and bars the pods from nodes with smaller GPUs.
	Patch trainerv1alpha1.RuntimePatch
}

// Fill returns the automatic resources of a new job, nil for one that does not ask for them, names its GPUs itself, or
// cannot be rendered anyway. The reason is not empty for a job that asks for them and cannot get them; it is a sentence
// without a period.
func Fill(job *trainerv1alpha1.TrainJob, runtime Runtime, fleet sizing.Fleet) (filled *Filled, reason string) {
	d, err := read(job, runtime, Options{})
	if err != nil || !d.wantsFilling() {
		return nil, ""
	}
	work, reason := d.work()
	if reason != "" {
		return nil, reason
	}
	choice, reason := sizing.Choose(work, fleet)
	if reason != "" {
		return nil, reason
	}
	nodes := ptr.Deref(trainerOf(job).NumNodes, int32(choice.Nodes))
	return &Filled{Nodes: nodes, Resources: d.filledResources(choice), Patch: d.filledPatch(choice)}, ""
}

// AutoFault returns the reason for refusing a new job with automatic resources: there is no answer, or it was not
// written into the job. Nil for all others.
func AutoFault(job *trainerv1alpha1.TrainJob, runtime Runtime, fleet sizing.Fleet) *field.Error {
	filled, reason := Fill(job, runtime, fleet)
	switch {
	case reason != "":
		return field.Invalid(annotationPath(topology.AnnotationAutoResources), autoOn,
			reason+"; or say spec.trainer.numNodes and resourcesPerNode yourself")
	case filled != nil:
		return field.Invalid(annotationPath(topology.AnnotationAutoResources), autoOn, notFilled)
	default:
		return nil
	}
}

// notFilled is the refusal of a job that should have been completed when it was created.
const notFilled = "GPUs are filled in by the controller's webhook when a job is created, and this job has none in resourcesPerNode; " +
	"create it again, or say spec.trainer.numNodes and resourcesPerNode yourself"

// checkFilled refuses a job that asks for automatic resources and has none.
func (d *draft) checkFilled() field.ErrorList {
	if !d.wantsFilling() {
		return nil
	}
	return field.ErrorList{field.Invalid(annotationPath(topology.AnnotationAutoResources), autoOn, notFilled)}
}

// wantsFilling reports whether a job asks for automatic resources and does not set its devices itself. Devices of its
// runtime are defaults.
func (d *draft) wantsFilling() bool {
	trainer := trainerOf(d.job)
	if d.jobWish(topology.AnnotationAutoResources) != autoOn || len(trainer.ResourceClaimsPerNode) > 0 {
		return false
	}
	own := trainer.ResourcesPerNode
	return own == nil || len(own.Claims) == 0 && gpuName(own.Requests) == "" && gpuName(own.Limits) == ""
}

// gpuName is the first resource by name that speaks of GPUs, even if there are to be none; empty for none.
func gpuName(list corev1.ResourceList) corev1.ResourceName {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if strings.Contains(strings.ToLower(string(name)), "gpu") {
			return name
		}
	}
	return ""
}

// filledResources returns the job's resourcesPerNode with the chosen GPUs. For a job that Kueue queues, they include
// the runtime's resources, because Kueue counts resourcesPerNode in place of these.
func (d *draft) filledResources(choice sizing.Choice) corev1.ResourceRequirements {
	runtimes := nodeResources(d.spec)
	out := corev1.ResourceRequirements{}
	switch own := trainerOf(d.job).ResourcesPerNode; {
	case own != nil:
		out = *own.DeepCopy()
	case d.job.Labels[KueueQueueLabel] != "":
		out = corev1.ResourceRequirements{Requests: runtimes.DeepCopy().Requests, Limits: runtimes.DeepCopy().Limits}
	}
	count := *resource.NewQuantity(choice.PerNode, resource.DecimalSI)
	out.Limits = mergeQuantities(out.Limits, corev1.ResourceList{choice.Resource: count})
	if names(&corev1.ResourceRequirements{Requests: runtimes.Requests}, choice.Resource) { // both must be the same
		out.Requests = mergeQuantities(out.Requests, corev1.ResourceList{choice.Resource: count})
	}
	return out
}

// filledPatch returns the runtime patch for a choice.
func (d *draft) filledPatch(choice sizing.Choice) trainerv1alpha1.RuntimePatch {
	template := &trainerv1alpha1.JobSetTemplatePatch{
		Metadata: &metav1.ObjectMeta{Annotations: map[string]string{topology.AnnotationChosen: choice.Words}},
	}
	for _, i := range d.nodeJobs() {
		pod := d.spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		if _, chosen := pod.NodeSelector[choice.PinKey]; chosen || choice.PinKey == "" {
			continue
		}
		if template.Spec == nil {
			template.Spec = &trainerv1alpha1.JobSetSpecPatch{}
		}
		template.Spec.ReplicatedJobs = append(template.Spec.ReplicatedJobs, trainerv1alpha1.ReplicatedJobPatch{
			Name: d.spec.ReplicatedJobs[i].Name,
			Template: &trainerv1alpha1.JobTemplatePatch{
				Spec: &trainerv1alpha1.JobSpecPatch{Template: &trainerv1alpha1.PodTemplatePatch{
					Spec: &trainerv1alpha1.PodSpecPatch{
						NodeSelector: map[string]string{choice.PinKey: choice.PinValue},
					},
				}},
			},
		})
	}
	return trainerv1alpha1.RuntimePatch{
		Manager: AutoManager, TrainingRuntimeSpec: &trainerv1alpha1.TrainingRuntimeSpecPatch{Template: template},
	}
}

// nodeJobs lists the ReplicatedJobs whose pods get resourcesPerNode.
func (d *draft) nodeJobs() []int {
	var out []int
	for i := range d.spec.ReplicatedJobs {
		if nodeContainer(&d.spec.ReplicatedJobs[i], companion(policyOf(d.runtime))) != nil {
			out = append(out, i)
		}
	}
	return out
}
