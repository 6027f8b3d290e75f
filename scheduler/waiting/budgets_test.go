package waiting_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The budgets that a tenant changes between two decisions have the scheduler read the units of that tenant's namespace
// again, and no others.
func TestReader_BudgetsOfOneNamespaceReadItsUnitsOnly(t *testing.T) {
	budget := func(namespace string, generation int64) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "budget", UID: types.UID(namespace), Generation: generation,
			},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "any"}},
			},
		}
	}
	f := newFleet(t, 4, 4)
	for _, p := range f.runs("runs", "8", 0, 0, 1) {
		p.Spec.PriorityClassName = "usual"
	}
	var list []*policyv1.PodDisruptionBudget
	read := 0
	f.reader.Budgets = func() []*policyv1.PodDisruptionBudget { return list }
	f.reader.Protected = func(string) bool { read++; return false }
	asks := f.group("asks", 1)
	for _, step := range []struct {
		name  string
		list  []*policyv1.PodDisruptionBudget
		reads bool
	}{
		{"the first decision", nil, true},
		{"no change", nil, false},
		{"a budget of another namespace", []*policyv1.PodDisruptionBudget{budget("evil", 1)}, false},
		{"a change of it", []*policyv1.PodDisruptionBudget{budget("evil", 2)}, false},
		{"one of its own namespace", []*policyv1.PodDisruptionBudget{budget("evil", 2), budget("team", 1)}, true},
		{"one that is gone elsewhere", []*policyv1.PodDisruptionBudget{budget("team", 1)}, false},
		{"one that is gone", nil, true},
	} {
		list, read = step.list, 0
		f.question(asks, "1").Fleet()
		if (read > 0) != step.reads {
			t.Errorf("%s: %d units were read, want some: %t", step.name, read, step.reads)
		}
	}
}
