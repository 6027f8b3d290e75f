package plan

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// Options are the decisions of the cluster and its administrator for all jobs.
type Options struct {
	// Gang makes a gang of every job without a setting of its own. Off renders exactly as upstream does.
	Gang bool `json:"gang,omitempty"`
	// GangAPI is the API of the cluster's PodGroups; empty for Kubernetes' own API.
	GangAPI gangapi.API `json:"gangAPI,omitempty"`
	// KeepsConstraints is set if the API server stores a PodGroup's topology constraints. Otherwise it drops them
	// silently; Lockstep's scheduler reads the annotation either way.
	KeepsConstraints bool `json:"keepsConstraints,omitempty"`
	// KeepsClaims is set if the API server stores a PodGroup's shared claims. Otherwise it drops them silently, and
	// each pod would get a claim of its own.
	KeepsClaims bool `json:"keepsClaims,omitempty"`
	// ComputeDomains is set if the cluster serves ComputeDomains: NVIDIA's DRA driver, or a substitute for it, is
	// installed.
	ComputeDomains bool `json:"computeDomains,omitempty"`
	// WithoutDomain is set if the job's pods were created without a channel of a ComputeDomain and can no longer get
	// one. A job that only prefers NVLink stays without.
	WithoutDomain bool `json:"withoutDomain,omitempty"`
	// StatusServer is the server to which trainers report their progress; nil if there is none.
	StatusServer *StatusServer `json:"statusServer,omitempty"`
	// SecretSuffix ends the names of the job's Secrets; empty for the fixed names of earlier versions.
	SecretSuffix string `json:"secretSuffix,omitempty"`
	// ReportedEnd is the end of the job by its trainer's reports; zero if it reports no end.
	ReportedEnd time.Time `json:"reportedEnd,omitzero"`
	// Now bounds a trainer's statements about the past; zero is no bound.
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

// Plan holds the objects of a TrainJob, in the order of application: no pod may exist before its group.
type Plan struct {
	// Framework is the name of the framework that the job uses.
	Framework string
	// Workload is nil for a job that is no gang, and where PodGroups are custom resources: nothing reads it there.
	Workload *schedulingv1beta1.Workload
	// PodGroups are those of the Workload's templates, in their order; none for a job that is no gang.
	PodGroups []*schedulingv1beta1.PodGroup
	// Claims are those that the pods of the groups share by name, where the API server shares no claims.
	Claims []SharedClaim
	// ComputeDomain connects the nodes of the pods that train by NVLink; nil for a job that does not. It outlives those
	// pods.
	ComputeDomain *unstructured.Unstructured
	// ForeignGroup is the PodGroup of another gang scheduler (Coscheduling, Volcano), if the runtime has its policy;
	// else nil.
	ForeignGroup *unstructured.Unstructured
	// ConfigMaps are files of the framework's. Secrets are created once, with randomly generated content.
	ConfigMaps []*corev1.ConfigMap
	Secrets    []Secret
	// JobSet is never nil.
	JobSet *jobsetv1alpha2.JobSet
	// Notes list, for the owner, the changes of the runtime by the gang's policy for evicted members, or the parts left
	// unchanged.
	Notes []string
	// Warnings name, for the owner, the features that the job lacks, and the remedy.
	Warnings []string
	// Creates are the kinds that the job's own pods create, as the initializer of a cache does. They have to be served.
	Creates []schema.GroupVersionKind
	// Chosen describes, for the owner, the computation of automatic resources; empty for a job with its own.
	Chosen string
}

// Secret is a Secret that the job needs.
type Secret struct {
	Name string
	Kind framework.SecretKind
}

// RefusalError is the reason why a job cannot be rendered. Trying again is no use until the job or its runtime changes.
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
	return NewDraft(job, runtime, options).Render()
}

// Draft is a TrainJob on its runtime, read and checked, and not rendered yet.
type Draft struct {
	draft   *draft
	options Options
	refusal RefusalError
}

// NewDraft merges a job's patches into its runtime and checks the result.
func NewDraft(job *trainerv1alpha1.TrainJob, runtime Runtime, options Options) *Draft {
	out := &Draft{options: options, refusal: RefusalError{Runtime: runtime.Name}}
	var err error
	if out.draft, err = read(job, runtime, options); err == nil {
		out.refusal.Faults = out.draft.validate(options)
		return out
	}
	if refusal, ok := errors.AsType[*RefusalError](err); ok {
		out.refusal = *refusal
	} else {
		out.refusal.Faults = field.ErrorList{field.Invalid(runtimePath(), runtime.Name, err.Error())}
	}
	return out
}

// Faults returns the faults of the job; empty if Render would render it.
func (d *Draft) Faults() field.ErrorList { return d.refusal.Faults }

// Render returns the plan. It completes the draft in place, so a draft is rendered once. The error is a RefusalError
// for a job with faults.
func (d *Draft) Render() (Plan, error) {
	if len(d.refusal.Faults) > 0 {
		return Plan{}, &d.refusal
	}
	draft, options := d.draft, d.options
	if d.draft = nil; draft == nil {
		return Plan{}, errors.New("the draft was rendered before")
	}
	var err error
	result := Plan{Framework: draft.framework.Name(), JobSet: draft.render()}
	result.Warnings, result.Chosen = draft.warnings, draft.annotations[topology.AnnotationChosen]
	result.Creates = draft.creates()
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
		policy := draft.newDisruption(members)
		ignored := draft.withoutEffect(policy)
		result.Notes = append(policy.render(&result.JobSet.Spec), ignored...)
	}
	return result, nil
}
