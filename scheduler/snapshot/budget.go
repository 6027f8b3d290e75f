package snapshot

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Budgets are the PodDisruptionBudgets of a cluster in a fixed order, by which package contention numbers them.
type Budgets struct {
	list      []*policyv1.PodDisruptionBudget
	selectors []labels.Selector
}

// NewBudgets returns the budgets by namespace and name. Selectors that select nothing are retained: their numbers stay.
func NewBudgets(list []*policyv1.PodDisruptionBudget) Budgets {
	list = slices.SortedFunc(slices.Values(list), func(a, b *policyv1.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := Budgets{list: list, selectors: make([]labels.Selector, len(list))}
	for i, budget := range list {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil ||
			selector.Empty() { // the API server accepts no invalid one; for kube-scheduler an empty one selects nothing
			selector = labels.Nothing()
		}
		out.selectors[i] = selector
	}
	return out
}

// Allowed returns the number of disruptions that each budget still allows.
func (b Budgets) Allowed() []int {
	out := make([]int, len(b.list))
	for i, budget := range b.list {
		out[i] = int(budget.Status.DisruptionsAllowed)
	}
	return out
}

// Covered returns the number of the pods that each budget would lose. Pods that leave already are not counted.
func (b Budgets) Covered(pods []*corev1.Pod) []contention.Covered {
	var out []contention.Covered
	for i, budget := range b.list {
		lost := 0
		for _, pod := range pods {
			_, counted := budget.Status.DisruptedPods[pod.Name]
			if pod.Namespace == budget.Namespace && !counted && pod.DeletionTimestamp == nil &&
				b.selectors[i].Matches(labels.Set(pod.Labels)) {
				lost++
			}
		}
		if lost > 0 {
			out = append(out, contention.Covered{Budget: i, Members: lost})
		}
	}
	return out
}

// Exceeded returns the names of the budgets that allow fewer disruptions than these pods are, as namespace/name.
func (b Budgets) Exceeded(pods []*corev1.Pod) []string {
	var names []string
	for _, c := range b.Covered(pods) {
		if budget := b.list[c.Budget]; c.Members > int(budget.Status.DisruptionsAllowed) {
			names = append(names, budget.Namespace+"/"+budget.Name)
		}
	}
	return names
}

// Same reports whether two lists number the same budgets, and cover the same pods.
func (b Budgets) Same(other Budgets) bool {
	return slices.EqualFunc(b.list, other.list, func(x, y *policyv1.PodDisruptionBudget) bool {
		return x == y || x.UID != "" && x.UID == y.UID && x.Generation == y.Generation &&
			len(x.Status.DisruptedPods)+len(y.Status.DisruptedPods) == 0
	})
}
