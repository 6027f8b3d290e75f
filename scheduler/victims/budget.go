package victims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budgets are the PodDisruptionBudgets of the cluster. As in kube-scheduler, one is exceeded only if nothing else makes room.
type budgets []*policyv1.PodDisruptionBudget

// Exceeded are those of the budgets that allow fewer disruptions than there would be if all these pods left.
func Exceeded(limits []*policyv1.PodDisruptionBudget, pods []*corev1.Pod) []*policyv1.PodDisruptionBudget {
	return budgets(limits).exceeded(pods)
}

// exceeded reports which budgets allow fewer disruptions than there are among the pods.
func (b budgets) exceeded(pods []*corev1.Pod) budgets {
	return slices.DeleteFunc(slices.Clone(b), func(budget *policyv1.PodDisruptionBudget) bool {
		return disrupted(budget, pods) <= int(budget.Status.DisruptionsAllowed)
	})
}

// covers reports whether one of the budgets has a pod of these.
func (b budgets) covers(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(
		b,
		func(budget *policyv1.PodDisruptionBudget) bool { return disrupted(budget, pods) > 0 },
	)
}

// disrupted is how many of the pods the budget would lose. Those that leave already are lost.
func disrupted(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) int {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil || selector.Empty() {
		return 0 // the API server lets no invalid one in, and an empty one selects nothing for kube-scheduler either
	}
	lost := 0
	for _, pod := range pods {
		_, counted := budget.Status.DisruptedPods[pod.Name]
		if pod.Namespace == budget.Namespace && !counted && pod.DeletionTimestamp == nil &&
			selector.Matches(labels.Set(pod.Labels)) {
			lost++
		}
	}
	return lost
}
