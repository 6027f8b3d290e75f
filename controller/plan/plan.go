package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// Options are what the cluster and its administrator decide for all jobs.
type Options struct {
	// Gang makes a gang of every job that does not say otherwise. Off renders exactly what upstream renders.
	Gang bool `json:"gang,omitempty"`
	// GangAPI is where the cluster keeps PodGroups; empty for Kubernetes' own API.
	GangAPI gangapi.API `json:"gangAPI,omitempty"`
	// KeepsConstraints says that the API server keeps a PodGroup's topology constraints. Where it does not, it drops
	// them silently; the annotation is what Lockstep's scheduler reads either way.
	KeepsConstraints bool `json:"keepsConstraints,omitempty"`
	// KeepsClaims says that the API server keeps a PodGroup's shared claims. Where it does not, it drops them silently, and
	// each pod would get a claim of its own.
	KeepsClaims bool `json:"keepsClaims,omitempty"`
	// ComputeDomains says that the cluster serves ComputeDomains: NVIDIA's DRA driver, or who plays it, is there.
	ComputeDomains bool `json:"computeDomains,omitempty"`
	// WithoutDomain says that the job's pods were made without a channel of a ComputeDomain and cannot get one any more. What only
	// prefers NVLink stays without.
	WithoutDomain bool `json:"withoutDomain,omitempty"`
	// StatusServer is where trainers report how far they are; nil if there is none.
	StatusServer *StatusServer `json:"statusServer,omitempty"`
	// SecretSuffix ends the names of the job's Secrets; empty for the fixed names of earlier versions.
	SecretSuffix string `json:"secretSuffix,omitempty"`
	// ReportedEnd is when the job ends by what its trainer reports; zero if it reports no end.
	ReportedEnd time.Time `json:"reportedEnd,omitzero"`
	// Now bounds what a trainer says about the past; zero is no bound.
	Now time.Time `json:"now,omitzero"`
}

// Runtime is a runtime of either kind, seen as a value.
type Runtime struct {
	// Kind is TrainingRuntime or ClusterTrainingRuntime.
	Kind string
	// Name is the runtime's name.
	Name string
	// Annotations are the runtime's own, where an administrator switches gangs on or off.
	Annotations map[string]string
	// Spec is the blueprint.
	Spec trainerv1alpha1.TrainingRuntimeSpec
}

// Plan is what a TrainJob becomes, in the order of application: no pod may exist before its group.
type Plan struct {
	// Framework is the name of the framework that the job uses.
	Framework string
	// Workload is nil for a job that is no gang, and where PodGroups are custom resources: nothing reads it there.
	Workload *schedulingv1beta1.Workload
	// PodGroups are those of the Workload's templates, in their order; none for a job that is no gang.
	PodGroups []*schedulingv1beta1.PodGroup
	// Claims are what the pods of the groups share by name, where the API server shares no claims.
	Claims []SharedClaim
	// ComputeDomain connects the nodes of the pods that train by NVLink; nil for a job that does not. It outlives those pods.
	ComputeDomain *unstructured.Unstructured
	// ForeignGroup is the PodGroup of another gang scheduler's (Coscheduling, Volcano), whose policy the runtime has; else nil.
	ForeignGroup *unstructured.Unstructured
	// ConfigMaps are files of the framework's. Secrets are created once, with randomly generated content.
	ConfigMaps []*corev1.ConfigMap
	Secrets    []Secret
	// JobSet is never nil.
	JobSet *jobsetv1alpha2.JobSet
	// Notes tell the owner what the gang's policy for evicted members changed in the runtime, or left alone.
	Notes []string
	// Warnings tell the owner what the job goes without, and how to mend it.
	Warnings []string
	// Chosen tells the owner how resources were filled in; empty for a job that says its own.
	Chosen string
}

// Secret is a Secret that the job needs.
type Secret struct {
	Name string
	Kind framework.SecretKind
}

// RefusalError says why a job cannot be rendered. Trying again is no use until the job or its runtime changes.
type RefusalError struct {
	Runtime string
	Faults  field.ErrorList
}

// Error lists the faults on one line.
func (e *RefusalError) Error() string {
	return fmt.Sprintf("rendering runtime %s: %v", e.Runtime, e.Faults.ToAggregate())
}

// New plans a TrainJob. The error is a RefusalError.
func New(job *trainerv1alpha1.TrainJob, runtime Runtime, options Options) (Plan, error) {
	draft, err := read(job, runtime, options)
	if err != nil {
		return Plan{}, err
	}
	if faults := draft.validate(options); len(faults) > 0 {
		return Plan{}, &RefusalError{Runtime: runtime.Name, Faults: faults}
	}
	result := Plan{Framework: draft.framework.Name(), JobSet: draft.render()}
	result.Warnings, result.Chosen = draft.warnings, draft.annotations[topology.AnnotationChosen]
	result.ConfigMaps, result.Secrets = draft.files()
	if result.ForeignGroup, err = draft.joinForeign(&result.JobSet.Spec); err != nil {
		return Plan{}, err
	}
	if len(draft.gangs) > 0 {
		result.Workload, result.PodGroups = draft.groupObjects(options)
	}
	for _, gang := range draft.gangs {
		gang.join(&result.JobSet.Spec)
		if options.sharesByName() {
			result.Claims = append(result.Claims, gang.shareByName(&result.JobSet.Spec)...)
		}
	}
	if draft.inDomain() {
		result.ComputeDomain = draft.joinDomain(&result.JobSet.Spec)
	}
	if members := draft.gangMembers(); len(members) > 0 {
		result.Notes = draft.newDisruption(members).render(&result.JobSet.Spec)
	}
	return result, nil
}
