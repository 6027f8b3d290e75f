// Package ownership determines the owner of an object.
//
// An owner reference is a claim: any user that may write an object may write it. The garbage collector resolves the
// kind and skips references to kinds that do not exist, so a controller that compares UIDs only believes references
// that are not checked. Here a claim counts if apiVersion, kind, name and UID are true, and an admission policy
// restricts the users that may write a true one (manifests/chart/templates/policies).
package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Controls reports whether owner, an object of that kind, is the controller of object: both are in one namespace, and
// the controller reference of object has the apiVersion, kind, name and UID of owner.
func Controls(owner metav1.Object, kind schema.GroupVersionKind, object metav1.Object) bool {
	claim := metav1.GetControllerOfNoCopy(object)
	return claim != nil && object.GetNamespace() == owner.GetNamespace() && names(*claim, owner, kind)
}

// ControllerOf returns the controller reference of object if it is one to that kind, and nil otherwise.
func ControllerOf(object metav1.Object, kind schema.GroupVersionKind) *metav1.OwnerReference {
	claim := metav1.GetControllerOf(object)
	if claim == nil || !isOf(*claim, kind) {
		return nil
	}
	return claim
}

func names(claim metav1.OwnerReference, owner metav1.Object, kind schema.GroupVersionKind) bool {
	return isOf(claim, kind) && claim.Name == owner.GetName() && claim.UID == owner.GetUID() && claim.UID != ""
}

func isOf(claim metav1.OwnerReference, kind schema.GroupVersionKind) bool {
	return claim.APIVersion == kind.GroupVersion().String() && claim.Kind == kind.Kind
}
