package runtimes

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
)

// usualAccount is the ServiceAccount of pods that name none. It distinguishes no users.
const usualAccount = "default"

// KeyOf returns the kind of a gang, or of a single pod, group being nil: one of its members names the ServiceAccount.
// The namespace is the only part that a tenant cannot choose.
func KeyOf(group *schedulingv1beta1.PodGroup, member *corev1.Pod, accelerators int64) forecast.Key {
	var of metav1.Object = member
	key := forecast.Key{Size: accelerators, Namespace: member.Namespace, Owner: member.Spec.ServiceAccountName}
	if key.Owner == usualAccount {
		key.Owner = ""
	}
	if group != nil {
		of = group
	}
	if owner := metav1.GetControllerOf(of); owner != nil {
		key.Runtime = owner.Kind
	}
	key.Stem = forecast.Stem(of.GetName())
	return key
}
