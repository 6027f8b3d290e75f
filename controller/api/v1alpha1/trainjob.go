package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainJob is one training job: a runtime, and this job's differences from it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.scheduling.phase`
// +kubebuilder:printcolumn:name="Ranks",type=integer,JSONPath=`.status.scheduling.ranks`
// +kubebuilder:printcolumn:name="Where",type=string,JSONPath=`.status.scheduling.placement.domain`
// +kubebuilder:printcolumn:name="Wait",type=date,JSONPath=`.status.scheduling.waitingSince`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.scheduling.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", message="metadata.name must match RFC 1035 DNS label format"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63", message="metadata.name must be no more than 63 characters"
type TrainJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec describes the training.
	// +optional
	Spec TrainJobSpec `json:"spec,omitempty,omitzero"`
	// status is the observed state of the job.
	// +optional
	Status TrainJobStatus `json:"status,omitempty,omitzero"`
}

// TrainJobList is a list of TrainJobs.
//
// +kubebuilder:object:root=true
type TrainJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrainJob `json:"items"`
}

// TrainJobSpec describes the training.
//
// Immutable fields can neither be added nor removed: the fields' own rules compare only values that exist on both
// sides.
// +kubebuilder:validation:XValidation:rule="has(self.trainer) == has(oldSelf.trainer)",fieldPath=".trainer",message="field is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.initializer) == has(oldSelf.initializer)",fieldPath=".initializer",message="field is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.activeDeadlineSeconds) == has(oldSelf.activeDeadlineSeconds)",fieldPath=".activeDeadlineSeconds",message="field is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.suspend) && self.suspend) || (has(oldSelf.suspend) && oldSelf.suspend) || !has(self.trainer) || !has(oldSelf.trainer) || (has(self.trainer.numNodes) == has(oldSelf.trainer.numNodes) && (!has(self.trainer.numNodes) || self.trainer.numNodes == oldSelf.trainer.numNodes))",fieldPath=".trainer.numNodes",message="field is immutable unless the TrainJob is suspended before or after the update"
// +kubebuilder:validation:XValidation:rule="(has(self.suspend) && self.suspend) || (has(oldSelf.suspend) && oldSelf.suspend) || !has(self.trainer) || !has(oldSelf.trainer) || (has(self.trainer.resourcesPerNode) == has(oldSelf.trainer.resourcesPerNode) && (!has(self.trainer.resourcesPerNode) || self.trainer.resourcesPerNode == oldSelf.trainer.resourcesPerNode))",fieldPath=".trainer.resourcesPerNode",message="field is immutable unless the TrainJob is suspended before or after the update"
type TrainJobSpec struct {
	// runtimeRef names the runtime that the job is rendered from.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +required
	RuntimeRef RuntimeRef `json:"runtimeRef"`
	// initializer configures the jobs that fetch the dataset and the model before training.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	Initializer *Initializer `json:"initializer,omitempty"`
	// trainer configures the processes that train. Its numNodes and resourcesPerNode may change while the job is suspended.
	// +optional
	Trainer *Trainer `json:"trainer,omitempty"`
	// runtimePatches change the runtime for this job, in list order, one entry for each manager.
	// +listType=map
	// +listMapKey=manager
	// +kubebuilder:validation:MaxItems=16
	// +optional
	RuntimePatches []RuntimePatch `json:"runtimePatches,omitempty"`
	// suspend, while true, prevents the job from running, or stops it.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// activeDeadlineSeconds is the time for which the job may be active, counted from its creation or its last
	// resumption.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	ActiveDeadlineSeconds int64 `json:"activeDeadlineSeconds,omitempty"`
	// managedBy names the controller that is responsible for the job.
	// +kubebuilder:default="trainer.kubeflow.org/trainjob-controller"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue', 'lockstep.dev/trainjob-controller']", message="ManagedBy must be trainer.kubeflow.org/trainjob-controller, kueue.x-k8s.io/multikueue or lockstep.dev/trainjob-controller if set"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// RuntimeRef names a TrainingRuntime of the job's namespace or a ClusterTrainingRuntime.
type RuntimeRef struct {
	// name is the runtime's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// apiGroup is the runtime's API group.
	// +kubebuilder:default="trainer.kubeflow.org"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`
	// kind is the runtime's kind.
	// +kubebuilder:default="ClusterTrainingRuntime"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Kind *string `json:"kind,omitempty"`
}

// Initializer configures the downloads before training.
type Initializer struct {
	// dataset configures the job that fetches the dataset.
	// +optional
	Dataset *DatasetInitializer `json:"dataset,omitempty"`
	// model configures the job that fetches the model.
	// +optional
	Model *ModelInitializer `json:"model,omitempty"`
}

// DatasetInitializer configures the job that fetches the dataset.
type DatasetInitializer struct {
	// storageUri is the place of the dataset.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')", message="storageUri may be empty, or it must be a valid URI (scheme://...)"
	// +optional
	StorageURI *string `json:"storageUri,omitempty"`
	// env is added to the initializer's container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// secretRef names a Secret whose keys become variables of the initializer's container.
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}

// ModelInitializer configures the job that fetches the model.
type ModelInitializer struct {
	// storageUri is the place of the model.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')", message="storageUri may be empty, or it must be a valid URI (scheme://...)"
	// +optional
	StorageURI *string `json:"storageUri,omitempty"`
	// env is added to the initializer's container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// secretRef names a Secret whose keys become variables of the initializer's container.
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}

// Trainer configures the processes that train.
//
// Only the number and the size of the nodes may change while the job is suspended.
// +kubebuilder:validation:XValidation:rule="[has(self.image), has(self.command), has(self.args), has(self.env), has(self.resourceClaimsPerNode), has(self.numProcPerNode)] == [has(oldSelf.image), has(oldSelf.command), has(oldSelf.args), has(oldSelf.env), has(oldSelf.resourceClaimsPerNode), has(oldSelf.numProcPerNode)]", message="field is immutable"
type Trainer struct {
	// image replaces the image of the trainer's container.
	// +kubebuilder:validation:MaxLength=500
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	Image *string `json:"image,omitempty"`
	// command replaces the command of the trainer's container.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=1048576
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	Command []string `json:"command,omitempty"`
	// args replaces the arguments of the trainer's container.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=1048576
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	Args []string `json:"args,omitempty"`
	// env is added to the trainer's container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// numNodes is the number of training nodes, which is the number of pods.
	// +optional
	NumNodes *int32 `json:"numNodes,omitempty"`
	// resourcesPerNode is merged into the resources of the trainer's container, resource by resource.
	// +optional
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
	// resourceClaimsPerNode are the claims for devices of each training node: added to its pod, and to the trainer's container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	ResourceClaimsPerNode []ResourceClaimPerNode `json:"resourceClaimsPerNode,omitempty"`
	// numProcPerNode is the number of processes on each training node.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="field is immutable"
	// +optional
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
}

// ResourceClaimPerNode is a claim for devices that each training node has.
//
// +kubebuilder:validation:XValidation:rule="has(self.resourceClaimName) != has(self.resourceClaimTemplateName)", message="exactly one of resourceClaimName and resourceClaimTemplateName must be set"
type ResourceClaimPerNode struct {
	// name is the claim's name in the pod. A claim of that name in the runtime's pods is replaced.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +required
	Name string `json:"name"`
	// resourceClaimName is the name of a ResourceClaim of the job's namespace, which all nodes share.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ResourceClaimName *string `json:"resourceClaimName,omitempty"`
	// resourceClaimTemplateName is the name of a ResourceClaimTemplate of the job's namespace, by which each node gets a claim of
	// its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty"`
}

// TrainJobStatus is the observed state of a TrainJob.
//
// +kubebuilder:validation:MinProperties=1
type TrainJobStatus struct {
	// conditions are Suspended, Complete and Failed. A job that was neither suspended nor ended has none.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// jobsStatus counts the child Jobs of each ReplicatedJob.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +optional
	JobsStatus []JobStatus `json:"jobsStatus,omitempty"`
	// trainerStatus is the status that the training processes report.
	// +kubebuilder:validation:XValidation:rule="has(self.lastUpdatedTime)", message="lastUpdatedTime is required when trainerStatus is present"
	// +optional
	TrainerStatus *TrainerStatus `json:"trainerStatus,omitempty"`
	// scheduling is the place of the job, or the reason for which it waits.
	// +optional
	Scheduling *SchedulingStatus `json:"scheduling,omitempty"`
}

// JobStatus counts the child Jobs of one ReplicatedJob.
type JobStatus struct {
	// name is the name of the ReplicatedJob.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// ready is the number of child Jobs whose pods are all ready or done.
	// +kubebuilder:validation:Minimum=0
	// +required
	Ready *int32 `json:"ready"`
	// succeeded is the number of child Jobs that ended well.
	// +kubebuilder:validation:Minimum=0
	// +required
	Succeeded *int32 `json:"succeeded"`
	// failed is the number of child Jobs that ended badly.
	// +kubebuilder:validation:Minimum=0
	// +required
	Failed *int32 `json:"failed"`
	// active is the number of child Jobs with at least one pod that is pending or running.
	// +kubebuilder:validation:Minimum=0
	// +required
	Active *int32 `json:"active"`
	// suspended is the number of child Jobs that are suspended.
	// +kubebuilder:validation:Minimum=0
	// +required
	Suspended *int32 `json:"suspended"`
}

// TrainerStatus is the status that the training processes report.
type TrainerStatus struct {
	// progressPercentage is the percentage of the training that is done.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ProgressPercentage *int32 `json:"progressPercentage,omitempty"`
	// estimatedRemainingSeconds is the expected time for the rest of the training.
	// +kubebuilder:validation:Minimum=0
	// +optional
	EstimatedRemainingSeconds *int32 `json:"estimatedRemainingSeconds,omitempty"`
	// metrics are the training's latest metrics, such as its loss.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Metrics []Metric `json:"metrics,omitempty"`
	// lastUpdatedTime is the time of the last report of the processes. A rule of the whole status demands it.
	// +optional
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime,omitempty,omitzero"`
}

// Metric is one metric of a training.
type Metric struct {
	// name is the metric's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Name string `json:"name"`
	// value is the metric's value as text.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Value string `json:"value"`
}
