package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// draft is a job before it is validated and rendered.
type draft struct {
	job       *trainerv1alpha1.TrainJob
	runtime   Runtime
	framework framework.Framework
	input     framework.Input
	// span is between how many nodes the job trains, if it is elastic.
	span span
	// slice is the TPU slice that each Job of the trainer's is to have, nil for none; sliceFault is its fault.
	slice      *tpuSlice
	sliceFault *field.Error
	// spec is the runtime's JobSet spec with the job's patches and resources; ours to change.
	spec jobsetv1alpha2.JobSetSpec
	// labels and annotations are those of the JobSet.
	labels, annotations map[string]string
	// gangs are the groups of the job, none for one that is no gang.
	gangs []*gang
	// nvlink is the job's wish for NVLink across nodes: required, preferred or none.
	nvlink string
	// status is the server to which the trainer reports; nil for none.
	status *StatusServer
	// warnings are for the job's owner.
	warnings []string
}

// read merges patches into the runtime and reads the result. Patches for unknown names are merged too, as an addition;
// validate refuses them by comparing with the runtime as it was.
func read(job *trainerv1alpha1.TrainJob, runtime Runtime, options Options) (*draft, error) {
	chosen := framework.Select(policyOf(runtime), trainerOf(job).Command)
	d := &draft{job: job, runtime: runtime, framework: chosen, status: options.StatusServer}
	var err error
	if faults := checkOrders(job.Spec.RuntimePatches); len(faults) > 0 {
		return nil, &RefusalError{Runtime: runtime.Name, Faults: faults}
	}
	if d.spec, err = patched(runtime.Spec.Template.Spec, job.Spec.RuntimePatches); err != nil {
		return nil, &RefusalError{Runtime: runtime.Name, Faults: field.ErrorList{
			field.Invalid(field.NewPath("spec", "runtimePatches"), len(job.Spec.RuntimePatches), err.Error()),
		}}
	}
	for i := range d.spec.ReplicatedJobs {
		switch ancestor(d.spec.ReplicatedJobs[i]) {
		case "":
		case trainerv1alpha1.AncestorTrainer:
			d.spec.ReplicatedJobs[i].Replicas = d.slicesOf(d.spec.ReplicatedJobs[i].Replicas)
		default: // an initializer is one Job, whatever the runtime's replicas
			d.spec.ReplicatedJobs[i].Replicas = 1
		}
	}
	d.labels, d.annotations = metadata(runtime.Spec.Template, job.Spec.RuntimePatches)
	if runtime.Spec.MLPolicy != nil {
		mergeResources(&d.spec, trainerOf(job).ResourcesPerNode, companion(policyOf(runtime)))
	}
	mergeClaims(&d.spec, trainerOf(job).ResourceClaimsPerNode, companion(policyOf(runtime)))
	d.prioritize()
	d.input = inputOf(job, runtime, d.spec, options)
	d.stretch()
	d.slice, d.sliceFault = d.tpuSlice()
	for i := range d.input.Roles {
		d.input.Roles[i].Pods = d.decidePodsPerJob(i)
	}
	if err = tooMany(runtime, d.input.Roles); err != nil {
		return nil, err
	}
	d.nvlink = d.wantsNVLink(options)
	for _, ask := range d.asks(options) {
		d.gangs = append(d.gangs, d.newGang(ask, options))
	}
	return d, nil
}

// patched merges patches into a JobSet spec, in list order: later managers win. ReplicatedJobs stay in the runtime's
// order; a strategic merge would put patched ones first.
func patched(
	spec jobsetv1alpha2.JobSetSpec, patches []trainerv1alpha1.RuntimePatch,
) (jobsetv1alpha2.JobSetSpec, error) {
	merged := *spec.DeepCopy()
	for _, patch := range addressed(patches, spec) {
		template := templatePatch(patch)
		if template == nil || template.Spec == nil {
			continue
		}
		base, err := json.Marshal(merged)
		if err != nil {
			return merged, fmt.Errorf("printing the JobSet spec: %w", err)
		}
		change, err := json.Marshal(changeOf(patch, merged))
		if err != nil {
			return merged, fmt.Errorf("printing the runtime patch of %s: %w", patch.Manager, err)
		}
		base, err = strategicpatch.StrategicMergePatch(base, change, jobsetv1alpha2.JobSetSpec{})
		if err != nil {
			return merged, fmt.Errorf("merging the runtime patch of %s: %w", patch.Manager, err)
		}
		merged = jobsetv1alpha2.JobSetSpec{}
		if err = json.Unmarshal(base, &merged); err != nil {
			return merged, fmt.Errorf("parsing the JobSet spec patched by %s: %w", patch.Manager, err)
		}
	}
	slices.SortStableFunc(merged.ReplicatedJobs, func(a, b jobsetv1alpha2.ReplicatedJob) int {
		return position(spec.ReplicatedJobs, a.Name) - position(spec.ReplicatedJobs, b.Name)
	})
	return merged, nil
}

// changeOf is the part of a patch that is merged into the spec.
func changeOf(patch trainerv1alpha1.RuntimePatch, spec jobsetv1alpha2.JobSetSpec) *trainerv1alpha1.JobSetSpecPatch {
	change := templatePatch(patch).Spec
	if patch.Manager != KueueManager {
		return change
	}
	return keepTolerations(change, func(replicated string) []corev1.Toleration {
		if i := position(spec.ReplicatedJobs, replicated); i >= 0 {
			return spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Tolerations
		}
		return nil
	})
}

func position(jobs []jobsetv1alpha2.ReplicatedJob, name string) int {
	return slices.IndexFunc(jobs, func(job jobsetv1alpha2.ReplicatedJob) bool { return job.Name == name })
}

// metadata is the runtime's labels and annotations for the JobSet, overlaid by each patch. The TrainJob's own are not
// passed on.
func metadata(
	template trainerv1alpha1.JobSetTemplateSpec, patches []trainerv1alpha1.RuntimePatch,
) (labels, annotations map[string]string) {
	labels, annotations = overlay(nil, template.Labels), overlay(nil, template.Annotations)
	for _, patch := range patches {
		if change := templatePatch(patch); change != nil && change.Metadata != nil {
			labels = overlay(labels, change.Metadata.Labels)
			annotations = overlay(annotations, change.Metadata.Annotations)
		}
	}
	return labels, annotations
}

func templatePatch(patch trainerv1alpha1.RuntimePatch) *trainerv1alpha1.JobSetTemplatePatch {
	if patch.TrainingRuntimeSpec == nil {
		return nil
	}
	return patch.TrainingRuntimeSpec.Template
}

// overlay returns base with top's entries; nil if there are none. Neither is changed.
func overlay(base, top map[string]string) map[string]string {
	if len(base)+len(top) == 0 {
		return nil
	}
	merged := make(map[string]string, len(base)+len(top))
	for _, layer := range []map[string]string{base, top} {
		maps.Copy(merged, layer)
	}
	return merged
}

// policyOf is the runtime's policy; empty when it has none.
func policyOf(runtime Runtime) trainerv1alpha1.MLPolicySource {
	if runtime.Spec.MLPolicy == nil {
		return trainerv1alpha1.MLPolicySource{}
	}
	return runtime.Spec.MLPolicy.MLPolicySource
}

// trainerOf is the job's trainer; empty when it has none. A job without one still gets its framework's variables.
func trainerOf(job *trainerv1alpha1.TrainJob) trainerv1alpha1.Trainer {
	if job.Spec.Trainer == nil {
		return trainerv1alpha1.Trainer{}
	}
	return *job.Spec.Trainer
}

// companion returns the ReplicatedJob beside the trainer's that gets the job's resources: MPI's nodes, if the launcher
// trains.
func companion(policy trainerv1alpha1.MLPolicySource) string {
	if policy.MPI != nil && ptr.Deref(policy.MPI.RunLauncherAsNode, false) {
		return trainerv1alpha1.NodeName
	}
	return ""
}
