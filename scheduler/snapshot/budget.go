package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Budgets are the PodDisruptionBudgets of a cluster. Each has a number, by which package contention knows it, for as
// long as it exists. Any tenant may create thousands and change them all the time, so those of one namespace are no
// work for the units of others. The zero value has none. It is not safe for concurrent use.
type Budgets struct {
	known map[types.NamespacedName]*budget
	// numbers are the budgets by number, nil where that is free.
	numbers []*budget
	free    []int
	// spaces are the namespaces that have budgets.
	spaces map[string]*budgetSpace
	// updates counts the calls of Update, changes the changes that they found.
	updates, changes int
}

// budget is one PodDisruptionBudget.
type budget struct {
	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
	number   int
	// seen is the last update that listed it.
	seen int
}

// budgetSpace holds the budgets of one namespace.
type budgetSpace struct {
	list []*budget
	// version is the number of changes by then.
	version int
}

// NewBudgets returns the budgets of a list.
func NewBudgets(list []*policyv1.PodDisruptionBudget) Budgets {
	var b Budgets
	b.Update(list)
	return b
}

// Update takes over the budgets that exist now, in any order.
func (b *Budgets) Update(list []*policyv1.PodDisruptionBudget) {
	if b.known == nil {
		b.known, b.spaces = make(map[types.NamespacedName]*budget, len(list)), make(map[string]*budgetSpace)
	}
	b.updates++
	present := 0
	for _, object := range list {
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		known := b.known[key]
		if known == nil {
			known = b.add(key)
		}
		if known.seen != b.updates {
			known.seen = b.updates
			present++
		}
		if known.object != object {
			b.take(known, object)
		}
	}
	if present < len(b.known) {
		b.sweep()
	}
}

// add adds a budget with a number of its own, without an object.
func (b *Budgets) add(key types.NamespacedName) *budget {
	added := &budget{number: len(b.numbers)}
	if last := len(b.free) - 1; last >= 0 {
		added.number, b.free = b.free[last], b.free[:last]
		b.numbers[added.number] = added
	} else {
		b.numbers = append(b.numbers, added)
	}
	space := b.spaces[key.Namespace]
	if space == nil {
		space = &budgetSpace{}
		b.spaces[key.Namespace] = space
	}
	space.list = append(space.list, added)
	b.known[key] = added
	return added
}

// take has a budget be this object. Its selector is compiled once for each generation.
func (b *Budgets) take(known *budget, object *policyv1.PodDisruptionBudget) {
	was := known.object
	known.object = object
	same := was != nil && was.UID != "" && was.UID == object.UID && was.Generation == object.Generation
	if !same {
		known.selector = selectorOf(object)
	}
	if !same || len(was.Status.DisruptedPods)+len(object.Status.DisruptedPods) > 0 {
		b.changed(b.spaces[object.Namespace])
	}
}

// changed notes that the budgets of a namespace may cover other pods than before.
func (b *Budgets) changed(space *budgetSpace) {
	b.changes++
	space.version = b.changes
}

// sweep removes the budgets that the last update did not list.
func (b *Budgets) sweep() {
	for key, known := range b.known {
		if known.seen != b.updates {
			delete(b.known, key)
			b.numbers[known.number], b.free = nil, append(b.free, known.number)
		}
	}
	for namespace, space := range b.spaces {
		before := len(space.list)
		space.list = slices.DeleteFunc(space.list, func(known *budget) bool { return known.seen != b.updates })
		switch len(space.list) {
		case before:
		case 0:
			delete(b.spaces, namespace)
		default:
			b.changed(space)
		}
	}
}

func selectorOf(object *policyv1.PodDisruptionBudget) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil ||
		selector.Empty() { // the API server accepts no invalid one; for kube-scheduler an empty one selects nothing
		return labels.Nothing()
	}
	return selector
}

// Version changes whenever the budgets may cover other pods of a namespace than before, or have other numbers.
func (b *Budgets) Version(namespace string) int {
	if space := b.spaces[namespace]; space != nil {
		return space.version
	}
	return 0
}

// Allowed returns the number of disruptions that each budget still allows.
func (b *Budgets) Allowed() []int {
	out := make([]int, len(b.numbers))
	for i, known := range b.numbers {
		if known != nil {
			out[i] = int(known.object.Status.DisruptionsAllowed)
		}
	}
	return out
}

// Covered returns the number of the pods that each budget would lose. Pods that leave already are not counted.
func (b *Budgets) Covered(pods []*corev1.Pod) []contention.Covered {
	var namespaces []string
	for _, pod := range pods {
		if b.spaces[pod.Namespace] != nil && !slices.Contains(namespaces, pod.Namespace) {
			namespaces = append(namespaces, pod.Namespace)
		}
	}
	var out []contention.Covered
	for _, namespace := range namespaces {
		for _, known := range b.spaces[namespace].list {
			if lost := known.loses(pods); lost > 0 {
				out = append(out, contention.Covered{Budget: known.number, Members: lost})
			}
		}
	}
	return out
}

// loses returns the number of the pods that the budget would lose.
func (b *budget) loses(pods []*corev1.Pod) int {
	lost := 0
	for _, pod := range pods {
		_, counted := b.object.Status.DisruptedPods[pod.Name]
		if pod.Namespace == b.object.Namespace && !counted && pod.DeletionTimestamp == nil &&
			b.selector.Matches(labels.Set(pod.Labels)) {
			lost++
		}
	}
	return lost
}

// Exceeded returns the names of the budgets that allow fewer disruptions than these pods are, as namespace/name.
func (b *Budgets) Exceeded(pods []*corev1.Pod) []string {
	var names []string
	for _, c := range b.Covered(pods) {
		if object := b.numbers[c.Budget].object; c.Members > int(object.Status.DisruptionsAllowed) {
			names = append(names, object.Namespace+"/"+object.Name)
		}
	}
	slices.Sort(names)
	return names
}
