package gangapi

import (
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Moved returns the PodGroup to create in the API to, with the status to write there. Fields that only one of the APIs
// has are dropped: the Workload, claims that the API server shares, and the priority, which other components fill in,
// in either API. Our finalizer is set in the native API, too: there the group's own protection identifies pods by the
// field that their API server has dropped.
func Moved(group *schedulingv1beta1.PodGroup, to API) *schedulingv1beta1.PodGroup {
	spec := group.Spec.DeepCopy()
	spec.Priority = nil
	if to == Resources {
		spec.WorkloadRef, spec.ResourceClaims = nil, nil
	}
	status := group.Status.DeepCopy()
	status.ResourceClaimStatuses = nil
	return &schedulingv1beta1.PodGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: to.Version().String(), Kind: Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: group.Namespace, Name: group.Name, Labels: group.Labels, Annotations: group.Annotations,
			OwnerReferences: slices.Clone(group.OwnerReferences), Finalizers: []string{Finalizer},
		},
		Spec: *spec, Status: *status,
	}
}
