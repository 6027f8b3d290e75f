package v1alpha1

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// Scheduling configures the groups of a TrainJob's pods for Kubernetes' own Workload and PodGroup API (KEP-3015 of
// Kubeflow Trainer): all that start together in one group, or groups of ReplicatedJobs.
//
// The number of pods that a gang needs has no field: it follows from the job. The KEP's third level, one group for each
// child Job of a ReplicatedJob, is left out: a trainer has one Job, so that it would be the second level by another
// name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.replicatedJobs) || !(has(self.schedulingPolicy) || has(self.schedulingConstraints) || has(self.disruptionMode) || has(self.resourceClaims))", message="replicatedJobs and the fields for the whole TrainJob are mutually exclusive"
type Scheduling struct {
	// GroupScheduling is for the whole TrainJob, whose parts that start together are one group each.
	GroupScheduling `json:",inline"`
	// replicatedJobs makes a group of each entry instead; pods of other ReplicatedJobs are in no group.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ReplicatedJobs []ReplicatedJobsScheduling `json:"replicatedJobs,omitempty"`
}

// ReplicatedJobsScheduling makes one group of some ReplicatedJobs.
type ReplicatedJobsScheduling struct {
	// targetReplicatedJobs are the names of the ReplicatedJobs; the first one gives the group its name.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +required
	TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
	// GroupScheduling is for this group.
	GroupScheduling `json:",inline"`
}

// GroupScheduling configures the scheduling of one group.
type GroupScheduling struct {
	// schedulingPolicy makes the group start whole, which is the default, or pod by pod.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`
	// schedulingConstraints names the node label whose value all pods of a gang must share.
	// +kubebuilder:validation:XValidation:rule="has(self.topology) && size(self.topology) == 1", message="there must be one topology key"
	// +optional
	SchedulingConstraints *schedulingv1beta1.PodGroupSchedulingConstraints `json:"schedulingConstraints,omitempty"`
	// disruptionMode makes pods of the group be preempted one by one or all together.
	// +kubebuilder:validation:XValidation:rule="has(self.single) != has(self.all)", message="exactly one of single and all must be set"
	// +optional
	DisruptionMode *schedulingv1beta1.DisruptionMode `json:"disruptionMode,omitempty"`
	// resourceClaims are shared by the pods of the group that name the same claim in their own resourceClaims.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(claim, has(claim.resourceClaimName) != has(claim.resourceClaimTemplateName))", message="exactly one of resourceClaimName and resourceClaimTemplateName must be set"
	// +optional
	ResourceClaims []schedulingv1beta1.PodGroupResourceClaim `json:"resourceClaims,omitempty"`
}

// SchedulingPolicy makes a group start whole or pod by pod.
//
// +kubebuilder:validation:XValidation:rule="has(self.gang) != has(self.basic)", message="exactly one of gang and basic must be set"
type SchedulingPolicy struct {
	// gang starts the group whole or not at all.
	// +optional
	Gang *GangPolicy `json:"gang,omitempty"`
	// basic starts the group's pods one by one, as if there were no group.
	// +optional
	Basic *BasicPolicy `json:"basic,omitempty"`
}

// GangPolicy starts a group whole or not at all. The number of pods follows from the job.
type GangPolicy struct{}

// BasicPolicy starts a group's pods one by one.
type BasicPolicy struct{}
