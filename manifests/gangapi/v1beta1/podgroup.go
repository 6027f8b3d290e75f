// Package v1beta1 declares the custom resource PodGroup, from which its CRD is generated. Programs use the native Go
// type, which has the same fields (package gangapi).
//
// +kubebuilder:object:generate=false
// +groupName=scheduling.lockstep.dev
package v1beta1

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is pods that start together, for clusters without the PodGroups of scheduling.k8s.io. Pods join it by the
// label lockstep.dev/pod-group.
//
// The CRD's rules repeat the API server's validation of its own PodGroups: those that are generated from Kubernetes'
// markers, and below the ones that these leave out, such as a field that is added later. Of a PodGroup only minCount
// can change; a priority that is missing is set once, by lockstep-scheduler.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.schedulingPolicy.gang.minCount`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="PodGroupInitiallyScheduled")].status`
// +kubebuilder:printcolumn:name="Disruption",type=string,JSONPath=`.status.conditions[?(@.type=="DisruptionTarget")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec sets the number of pods that start together, and their place. The fields are those of PodGroups in
	// scheduling.k8s.io/v1beta1.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.schedulingPolicy.gang) != has(self.schedulingPolicy.basic)",message="schedulingPolicy must be one of gang, basic"
	// +kubebuilder:validation:XValidation:rule="!has(self.disruptionMode) || has(self.disruptionMode.single) != has(self.disruptionMode.all)",message="disruptionMode must be one of single, all"
	// +kubebuilder:validation:XValidation:rule="!has(self.priorityClassName) || self.priorityClassName == '' || self.priorityClassName.size() <= 253 && self.priorityClassName.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must be the name of a PriorityClass"
	// +kubebuilder:validation:XValidation:rule="!has(self.workloadRef) || self.workloadRef.workloadName.size() <= 253 && self.workloadRef.workloadName.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="workloadRef.workloadName must be the name of a Workload"
	// +kubebuilder:validation:XValidation:rule="!has(self.workloadRef) || self.workloadRef.templateName.size() <= 63 && self.workloadRef.templateName.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="workloadRef.templateName must be the name of a template"
	// +kubebuilder:validation:XValidation:rule="!has(self.schedulingConstraints) || !has(self.schedulingConstraints.topology) || self.schedulingConstraints.topology.all(constraint, constraint.key.size() <= 317 && constraint.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key of schedulingConstraints must be that of a node label"
	// +kubebuilder:validation:XValidation:rule="!has(self.parentCompositePodGroupName)",message="parentCompositePodGroupName is not supported"
	// +kubebuilder:validation:XValidation:rule="!has(self.preemptionPolicy)",message="preemptionPolicy is that of the pods"
	// +kubebuilder:validation:XValidation:rule="!has(self.resourceClaims)",message="resourceClaims need PodGroups of scheduling.k8s.io; share a ResourceClaim by naming it in the pods"
	// +kubebuilder:validation:XValidation:rule="has(self.schedulingPolicy.gang) == has(oldSelf.schedulingPolicy.gang)",message="the kind of schedulingPolicy is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.workloadRef) == has(oldSelf.workloadRef)",message="workloadRef is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.schedulingConstraints) == has(oldSelf.schedulingConstraints) && (!has(self.schedulingConstraints) || self.schedulingConstraints == oldSelf.schedulingConstraints)",message="schedulingConstraints is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.priorityClassName) == has(oldSelf.priorityClassName)",message="priorityClassName is immutable"
	Spec schedulingv1beta1.PodGroupSpec `json:"spec"`
	// status has conditions that lockstep-scheduler writes.
	//
	// +optional
	Status schedulingv1beta1.PodGroupStatus `json:"status,omitempty"`
}
