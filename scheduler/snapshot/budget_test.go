package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// budgetOf is a budget that covers the pods with a label.
func budgetOf(namespace, name, label string, generation int64) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Generation: generation,
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(generation % 3)},
	}
}

// covers lists what the budgets allow and lose with the pods, without their numbers.
func covers(b *snapshot.Budgets, pods []*corev1.Pod) string {
	allowed := b.Allowed()
	var lines []string
	for _, c := range b.Covered(pods) {
		lines = append(lines, fmt.Sprintf("%d of %d", c.Members, allowed[c.Budget]))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines, b.Exceeded(pods))
}

// Budgets that follow changes answer as those that are read anew, and the version of a namespace changes with their
// answers.
func TestBudgets_FollowChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(of string, n int) string { return fmt.Sprint(of, random.IntN(n)) }
	pods := make(map[string][]*corev1.Pod)
	for i := range 60 {
		p := pod(fmt.Sprint("p", i), nil)
		p.Namespace, p.Labels = fmt.Sprint("team", i%3), map[string]string{"app": word("app", 4)}
		pods[p.Namespace] = append(pods[p.Namespace], p)
	}
	exist, generation := make(map[types.NamespacedName]*policyv1.PodDisruptionBudget), int64(0)
	var follow snapshot.Budgets
	for range 2000 {
		generation++
		b := budgetOf(word("team", 3), word("b", 6), word("app", 4), generation)
		key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
		before, versions := make(map[string]string), make(map[string]int)
		for namespace := range pods {
			before[namespace], versions[namespace] = fmt.Sprint(
				follow.Covered(pods[namespace]),
			), follow.Version(
				namespace,
			)
		}
		switch was := exist[key]; {
		case random.IntN(3) == 0:
			delete(exist, key)
		case was != nil && random.IntN(3) == 0:
			same := was.DeepCopy()
			same.Status.DisruptionsAllowed = int32(random.IntN(3))
			exist[key] = same
		case was != nil && random.IntN(3) == 0:
			same := was.DeepCopy()
			same.Status.DisruptedPods = map[string]metav1.Time{pods[b.Namespace][random.IntN(20)].Name: {}}
			exist[key] = same
		default:
			exist[key] = b
		}
		var list []*policyv1.PodDisruptionBudget
		for _, b := range exist {
			list = append(list, b)
		}
		follow.Update(list)
		anew := snapshot.NewBudgets(list)
		var all []*corev1.Pod
		for namespace, of := range pods {
			all = append(all, of...)
			if got, want := covers(&follow, of), covers(&anew, of); got != want {
				t.Fatalf("%s: covered are %s, want %s", namespace, got, want)
			}
			if follow.Version(namespace) == versions[namespace] && fmt.Sprint(follow.Covered(of)) != before[namespace] {
				t.Fatalf("%s: other pods are covered under the same version", namespace)
			}
			if namespace != b.Namespace && follow.Version(namespace) != versions[namespace] {
				t.Fatalf("%s has another version after a change of %s", namespace, b.Namespace)
			}
		}
		if got, want := covers(&follow, all), covers(&anew, all); got != want {
			t.Fatalf("of all namespaces covered are %s, want %s", got, want)
		}
		if n := len(follow.Allowed()); n > 18 {
			t.Fatalf("%d numbers for 18 budgets at most", n)
		}
	}
}

// BenchmarkBudgets_OfATenant is one decision while a tenant has ten thousand budgets and changes one, and others run
// 20,000 pods.
func BenchmarkBudgets_OfATenant(b *testing.B) {
	var list []*policyv1.PodDisruptionBudget
	for i := range 10_000 {
		list = append(list, budgetOf("evil", fmt.Sprint("b", i), "any", 1))
	}
	var pods []*corev1.Pod
	for i := range 20_000 {
		pods = append(pods, pod(fmt.Sprint("p", i), nil))
	}
	var budgets snapshot.Budgets
	budgets.Update(list)
	b.ResetTimer()
	for i := range b.N {
		list[i%len(list)] = budgetOf("evil", fmt.Sprint("b", i%len(list)), "any", int64(i+2))
		budgets.Update(list)
		budgets.Allowed()
		for i := range pods {
			budgets.Covered(pods[i : i+1])
		}
	}
}
