package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// FrozenTrainJob records the runtime and the decisions with which a TrainJob was first rendered. They hold until the job ends.
// Its name is the UID of the TrainJob. Only the controller reads and writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:printcolumn:name="Job namespace",type=string,JSONPath=`.spec.trainJob.namespace`
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.spec.trainJob.name`
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtime.metadata.name`
// +kubebuilder:printcolumn:name="Renderer",type=integer,JSONPath=`.spec.rendering.renderer`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FrozenTrainJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the state.
	Spec FrozenTrainJobSpec `json:"spec"`
}

// FrozenTrainJobList is a list of FrozenTrainJobs.
//
// +kubebuilder:object:root=true
type FrozenTrainJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FrozenTrainJob `json:"items"`
}

// FrozenTrainJobSpec is the state of one TrainJob.
type FrozenTrainJobSpec struct {
	// trainJob identifies the TrainJob of this state.
	TrainJob TrainJobReference `json:"trainJob"`
	// runtime is the TrainingRuntime or ClusterTrainingRuntime, the whole object but for its managed fields.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Runtime runtime.RawExtension `json:"runtime"`
	// decisions are the options of the controller that were in force.
	Decisions Decisions `json:"decisions"`
	// rendering identifies the JobSet that was last applied.
	Rendering Rendering `json:"rendering"`
}

// TrainJobReference identifies a TrainJob of group trainer.kubeflow.org.
type TrainJobReference struct {
	// namespace is the TrainJob's namespace.
	Namespace string `json:"namespace"`
	// name is the TrainJob's name.
	Name string `json:"name"`
	// uid is the TrainJob's UID.
	UID types.UID `json:"uid"`
}

// Decisions are options of the controller that show in pod templates. They are final for a job, whatever the options
// are later.
type Decisions struct {
	// gangByDefault is --gang-default: whether a job is a gang if neither it nor its runtime sets that.
	GangByDefault bool `json:"gangByDefault"`
	// computeDomain is set if the pods have channels of a ComputeDomain of the job's.
	ComputeDomain bool `json:"computeDomain"`
	// statusServer names the server to which the pods report their progress; absent without one.
	// +optional
	StatusServer *StatusServerReference `json:"statusServer,omitempty"`
	// secretSuffix ends the names of the Secrets that the pods mount. It is randomly generated and recorded before they are created.
	// Empty for a job without Secrets, and for one whose Secrets have the fixed names of an earlier version.
	// +optional
	SecretSuffix string `json:"secretSuffix,omitempty"`
}

// StatusServerReference names a status server.
type StatusServerReference struct {
	// url is its address without a path; empty where the job's owner replaced it.
	// +optional
	URL string `json:"url,omitempty"`
}

// Rendering identifies the planner's rendering of a job.
type Rendering struct {
	// renderer is the version of the rules by which the planner renders (plan.Renderer).
	// +kubebuilder:validation:Minimum=1
	Renderer int32 `json:"renderer"`
	// digest is the SHA-256 of the JobSet as JSON, in hexadecimal, without spec.suspend; empty where another version of the
	// controller, or another controller, has rendered the JobSet, and while another rendering is being applied.
	Digest string `json:"digest"`
}
