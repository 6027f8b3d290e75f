package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// TrainingRuntime is a blueprint for the TrainJobs of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
type TrainingRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the blueprint.
	// +optional
	Spec TrainingRuntimeSpec `json:"spec,omitempty,omitzero"`
}

// TrainingRuntimeList is a list of TrainingRuntimes.
//
// +kubebuilder:object:root=true
type TrainingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrainingRuntime `json:"items"`
}

// ClusterTrainingRuntime is a blueprint for the TrainJobs of all namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster
type ClusterTrainingRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the blueprint.
	// +optional
	Spec TrainingRuntimeSpec `json:"spec,omitempty,omitzero"`
}

// ClusterTrainingRuntimeList is a list of ClusterTrainingRuntimes.
//
// +kubebuilder:object:root=true
type ClusterTrainingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterTrainingRuntime `json:"items"`
}

// TrainingRuntimeSpec is the blueprint of TrainJobs.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!(has(self.scheduling) && has(self.podGroupPolicy))", message="scheduling and podGroupPolicy are mutually exclusive"
type TrainingRuntimeSpec struct {
	// mlPolicy configures how the training processes find each other.
	// +optional
	MLPolicy *MLPolicy `json:"mlPolicy,omitempty"`
	// podGroupPolicy selects the foreign gang scheduler for which the pods are grouped.
	// +optional
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`
	// ttlSecondsAfterFinished is the time for which TrainJobs of this runtime are retained after their end; without it they are
	// retained for good. It holds for jobs that ended before it was set, too.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// scheduling configures the groups of pods for Kubernetes' own gang scheduling.
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// template is the JobSet that TrainJobs become.
	// +optional
	Template JobSetTemplateSpec `json:"template,omitempty,omitzero"`
}

// JobSetTemplateSpec is the JobSet that TrainJobs become.
//
// +kubebuilder:validation:MinProperties=1
type JobSetTemplateSpec struct {
	// metadata holds labels and annotations of the JobSet.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the JobSet's spec.
	// +optional
	Spec jobsetv1alpha2.JobSetSpec `json:"spec,omitempty,omitzero"`
}

// MLPolicy sets the number of training nodes, and how their processes find each other.
//
// +kubebuilder:validation:XValidation:rule="[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost), has(self.flux)].filter(x, x).size() <= 1", message="Only one of the policy can be configured"
type MLPolicy struct {
	// numNodes is the number of training nodes of a job that does not set its own.
	// +optional
	NumNodes *int32 `json:"numNodes,omitempty"`
	// MLPolicySource is the framework.
	MLPolicySource `json:",inline"`
}

// MLPolicySource is the framework: at most one field is set.
type MLPolicySource struct {
	// torch configures PyTorch, whose processes torchrun starts.
	// +optional
	Torch *TorchMLPolicySource `json:"torch,omitempty"`
	// mpi configures MPI, whose processes mpirun starts from a launcher.
	// +optional
	MPI *MPIMLPolicySource `json:"mpi,omitempty"`
	// jax configures JAX, one process on each node.
	// +optional
	JAX *JAXMLPolicySource `json:"jax,omitempty"`
	// xgboost configures XGBoost, one worker for each GPU or node.
	// +optional
	XGBoost *XGBoostMLPolicySource `json:"xgboost,omitempty"`
	// flux configures Flux, whose brokers start the processes.
	// +optional
	Flux *FluxMLPolicySource `json:"flux,omitempty"`
}

// TorchMLPolicySource configures PyTorch.
type TorchMLPolicySource struct {
	// envInjection names further containers that need PyTorch's variables.
	// +optional
	EnvInjection *TorchEnvInjection `json:"envInjection,omitempty"`
}

// TorchEnvInjection names further containers that need PyTorch's variables.
type TorchEnvInjection struct {
	// targets are the containers, by ReplicatedJob.
	// +listType=map
	// +listMapKey=jobName
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Targets []TorchEnvInjectionTarget `json:"targets,omitempty"`
}

// TorchEnvInjectionTarget names containers of one ReplicatedJob.
type TorchEnvInjectionTarget struct {
	// jobName is the name of the ReplicatedJob.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	JobName string `json:"jobName"`
	// containerNames are the names of its containers or init containers.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!('node' in self)", message="containerNames must not include the main node container because PET_* envs are always injected into it"
	// +required
	ContainerNames []string `json:"containerNames"`
}

// JAXMLPolicySource configures JAX.
type JAXMLPolicySource struct{}

// XGBoostMLPolicySource configures XGBoost.
type XGBoostMLPolicySource struct{}

// MPIImplementation is an implementation of MPI.
type MPIImplementation string

// MPIImplementationOpenMPI is OpenMPI.
const MPIImplementationOpenMPI MPIImplementation = "OpenMPI"

// MPIMLPolicySource configures MPI.
type MPIMLPolicySource struct {
	// numProcPerNode is the number of processes on each node of a job that does not set its own.
	// +kubebuilder:default=1
	// +optional
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
	// mpiImplementation is the implementation of MPI.
	// +kubebuilder:default=OpenMPI
	// +kubebuilder:validation:Enum=OpenMPI;""
	// +optional
	MPIImplementation MPIImplementation `json:"mpiImplementation,omitempty"`
	// sshAuthMountPath is the path at which the SSH keys are mounted.
	// +kubebuilder:default="/root/.ssh"
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	SSHAuthMountPath *string `json:"sshAuthMountPath,omitempty"`
	// runLauncherAsNode makes the launcher one of the training nodes.
	// +kubebuilder:default=false
	// +optional
	RunLauncherAsNode *bool `json:"runLauncherAsNode,omitempty"`
}

// FluxMLPolicySource configures Flux.
type FluxMLPolicySource struct {
	// numProcPerNode is the number of tasks on each node of a job that does not set its own.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1", message="NumProcPerNode in fluxPolicy must be >= 1"
	// +optional
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
}

// PodGroupPolicy selects the foreign gang scheduler for which the pods are grouped.
type PodGroupPolicy struct {
	// PodGroupPolicySource is the scheduler.
	PodGroupPolicySource `json:",inline"`
}

// PodGroupPolicySource is the foreign gang scheduler.
type PodGroupPolicySource struct {
	// coscheduling groups the pods for the Coscheduling plugin.
	// +optional
	Coscheduling *CoschedulingPodGroupPolicySource `json:"coscheduling,omitempty"`
	// volcano groups the pods for Volcano.
	// +optional
	Volcano *VolcanoPodGroupPolicySource `json:"volcano,omitempty"`
}

// CoschedulingPodGroupPolicySource groups the pods for the Coscheduling plugin.
type CoschedulingPodGroupPolicySource struct {
	// scheduleTimeoutSeconds is the time for which the plugin waits for the whole group.
	// +kubebuilder:default=60
	// +optional
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// VolcanoPodGroupPolicySource groups the pods for Volcano.
type VolcanoPodGroupPolicySource struct {
	// networkTopology places the group close together.
	// +optional
	NetworkTopology *VolcanoNetworkTopology `json:"networkTopology,omitempty"`
}

// VolcanoNetworkTopologyMode makes a topology required or preferred.
type VolcanoNetworkTopologyMode string

const (
	// VolcanoHard makes the topology a demand.
	VolcanoHard VolcanoNetworkTopologyMode = "hard"
	// VolcanoSoft makes the topology a wish.
	VolcanoSoft VolcanoNetworkTopologyMode = "soft"
)

// VolcanoNetworkTopology places a group of Volcano close together.
type VolcanoNetworkTopology struct {
	// mode makes the topology required (hard) or preferred (soft).
	// +kubebuilder:default=hard
	// +kubebuilder:validation:Enum=hard;soft
	// +optional
	Mode VolcanoNetworkTopologyMode `json:"mode,omitempty"`
	// highestTierAllowed is the widest tier that the group may span.
	// +kubebuilder:default=1
	// +optional
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`
}
