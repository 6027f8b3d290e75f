// Package v1alpha1 holds the API in which the controller stores its own state: FrozenTrainJob of group
// state.lockstep.dev.
//
// The group has nothing else in it, and no role for users names it, so that neither a role on TrainJobs nor a wildcard on
// another group of Lockstep's grants a verb here. The objects live in the controller's namespace.
//
// +kubebuilder:object:generate=true
// +groupName=state.lockstep.dev
package v1alpha1
