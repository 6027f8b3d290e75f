package apiserver

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Delete deletes an object: at once, or, if it has finalizers or a grace period, marks it. The error is an API error.
func (s *Server) Delete(kind string, name types.NamespacedName, o metav1.DeleteOptions) error {
	old, err := s.Get(kind, name)
	if err != nil {
		return err
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return conflict(kind, name.Name, "Precondition failed: UID in precondition: "+string(*p.UID))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return conflict(
				kind,
				name.Name,
				"Precondition failed: ResourceVersion in precondition: "+*p.ResourceVersion,
			)
		}
	}
	next := clone(old)
	if o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationForeground &&
		!slices.Contains(next.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		next.SetFinalizers(append(next.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
	grace := int64(0)
	if pod, ok := old.(*corev1.Pod); ok {
		grace = graceOf(pod, o.GracePeriodSeconds)
	}
	if grace == 0 && len(next.GetFinalizers()) == 0 {
		s.drop(kind, old)
		return nil
	}
	if at := old.GetDeletionTimestamp(); at == nil || !isZero(old.GetDeletionGracePeriodSeconds()) && grace == 0 {
		now := metav1.NewTime(s.now().Truncate(time.Second).Add(time.Duration(grace) * time.Second))
		next.SetDeletionTimestamp(&now)
		next.SetDeletionGracePeriodSeconds(&grace)
		s.put(kind, old, next)
	}
	return nil
}

// graceOf returns the number of seconds that a pod has to leave: none if no kubelet runs it.
func graceOf(pod *corev1.Pod, asked *int64) int64 {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	switch {
	case asked != nil:
		return *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	default:
		return corev1.DefaultTerminationGracePeriodSeconds
	}
}

// Bind binds a pod. It is a conflict if the pod already has a node or is being deleted, as in kube-apiserver.
func (s *Server) Bind(b *corev1.Binding) error {
	name := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	old, err := s.Get("Pod", name)
	if err != nil {
		return err
	}
	pod, ok := old.(*corev1.Pod)
	switch {
	case !ok:
		return internal(errNoPod)
	case b.UID != "" && b.UID != pod.UID:
		return conflict("Pod", b.Name, "Precondition failed: UID in precondition: "+string(b.UID))
	case pod.DeletionTimestamp != nil:
		return conflict("Pod", b.Name, "pod "+b.Name+" is being deleted, cannot be assigned to a host")
	case pod.Spec.NodeName != "":
		return conflict("Pod", b.Name, "pod "+b.Name+" is already assigned to node \""+pod.Spec.NodeName+"\"")
	}
	next := pod.DeepCopy()
	next.Spec.NodeName, next.Status.NominatedNodeName = b.Target.Name, ""
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled
	})
	next.Status.Conditions = append(next.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now()),
	})
	s.put("Pod", old, next)
	return nil
}
