package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/topology"
)

// mostLineups is the number of gangs that are retained in rank order.
const mostLineups = 16

// lineups are those of the gangs that were evaluated last, the last one first.
type lineups []*lineup

// lineup stores the pods of a gang in rank order, with the values read of each: a large gang is evaluated again with
// each member that it loses. The object of a pod never changes.
type lineup struct {
	gang  types.NamespacedName
	known map[*corev1.Pod]*ranked
	order []*ranked
	kinds []kind
	// round is the number of the last question.
	round int
}

// ranked is a pod in its place.
type ranked struct {
	rank
	as role
	// kindOf is its number among the kinds, -1 before that was asked.
	kindOf int
	// node is the number of its node in the tree, -1 if that is not there.
	node int
	tree *topology.Tree
	// round is the last question in which it was.
	round int
}

// role is a pod's part in a question.
type role int

const (
	waits role = iota
	runs
	comes
)

// of returns the lineup of a gang.
func (l *lineups) of(group *schedulingv1beta1.PodGroup) *lineup {
	gang := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	at := slices.IndexFunc(*l, func(of *lineup) bool { return of.gang == gang })
	var found *lineup
	if at >= 0 {
		found = (*l)[at]
		*l = slices.Delete(*l, at, at+1)
	} else {
		found = &lineup{gang: gang, known: make(map[*corev1.Pod]*ranked)}
	}
	*l = slices.Insert(*l, 0, found)
	*l = (*l)[:min(len(*l), mostLineups)]
	return found
}

// line returns the pods of a question in rank order. The slice is the lineup's.
func (l *lineup) line(waiting, running, late []*corev1.Pod) []*ranked {
	l.round++
	if len(l.kinds) > 2*len(l.order) { // kinds of pods that left
		l.known, l.order, l.kinds = make(map[*corev1.Pod]*ranked), nil, nil
	}
	came := l.enter(waiting, waits)
	came = append(came, l.enter(running, runs)...)
	came = append(came, l.enter(late, comes)...)
	if len(l.order)+len(came) > len(waiting)+len(running)+len(late) {
		l.order = slices.DeleteFunc(l.order, func(m *ranked) bool {
			if m.round != l.round {
				delete(l.known, m.pod)
			}
			return m.round != l.round
		})
	}
	slices.SortFunc(came, compareRanked)
	l.order = merged(l.order, came)
	return l.order
}

// enter notes that pods are in the question, and returns those that were in none.
func (l *lineup) enter(pods []*corev1.Pod, as role) []*ranked {
	var came []*ranked
	for _, pod := range pods {
		m := l.known[pod]
		if m == nil {
			m = &ranked{rank: rankOf(pod), kindOf: -1}
			l.known[pod], came = m, append(came, m)
		}
		if m.as != as {
			m.as, m.kindOf = as, -1
		}
		m.round = l.round
	}
	return came
}

func compareRanked(a, b *ranked) int { return a.compare(b.rank) }

// merged merges two lists in order.
func merged(a, b []*ranked) []*ranked {
	if len(b) == 0 {
		return a
	}
	out := make([]*ranked, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareRanked(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// at finds the node of a member in the tree.
func (m *ranked) at(tree *topology.Tree) {
	if m.tree == tree {
		return
	}
	m.tree, m.node = tree, -1
	if at, ok := tree.Index(m.pod.Spec.NodeName); ok {
		m.node = at
	}
}

// kind returns which of the lineup's kinds a member is.
func (l *lineup) kind(m *ranked) int {
	if m.kindOf >= 0 {
		return m.kindOf
	}
	k := kind{pod: m.pod, asks: asks(m.pod), wants: m.pod.Spec.NodeName}
	if m.as == runs {
		k.wants = ""
	}
	if m.kindOf = slices.IndexFunc(l.kinds, k.equals); m.kindOf < 0 {
		m.kindOf = len(l.kinds)
		l.kinds = append(l.kinds, k)
	}
	return m.kindOf
}
