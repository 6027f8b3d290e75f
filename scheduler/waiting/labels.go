package waiting

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// labels are the node labels on which answers have depended. On some clusters other labels change with every job.
type labels map[string]bool

// mostLabels is the number of remembered labels. If more are requested, each change of a label matters.
const mostLabels = 1024

// asks notes the labels that a question depends on.
func (l labels) asks(x *Question) {
	for _, level := range x.View.Tree.Levels() {
		for _, key := range level.Keys() {
			l.add(key)
		}
	}
	if len(x.Choices) > 0 {
		gang := x.Choices[0].Gang // its levels may not be there yet
		for _, level := range []string{gang.Required, gang.Segment.Level, gang.Spread.Level} {
			l.add(level)
		}
	}
	for _, key := range x.Labels {
		l.add(key)
	}
	for _, pod := range x.Waiting {
		for key := range pod.Spec.NodeSelector {
			l.add(key)
		}
		if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
			continue
		}
		required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if required == nil {
			continue
		}
		for _, term := range required.NodeSelectorTerms {
			for _, expression := range term.MatchExpressions {
				l.add(expression.Key)
			}
		}
	}
}

func (l labels) add(key string) {
	if len(l) < mostLabels {
		l[key] = true
	}
}

// Matters reports whether a change of a node's labels can matter to an entity that waits: one of them was asked for, or
// makes a level.
func (q *Queue) Matters(before, after *corev1.Node) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.labels) >= mostLabels {
		return true
	}
	a, b := before.Labels, after.Labels
	for _, pair := range [][2]map[string]string{{a, b}, {b, a}} {
		for key, value := range pair[0] {
			if other, ok := pair[1][key]; (!ok || other != value) && (q.labels[key] || isLevel(key, value)) {
				return true
			}
		}
	}
	return false
}

// isLevel reports whether a label makes a level of its own.
func isLevel(key, value string) bool {
	return len(topology.DetectLevels([]topology.Node{{Labels: map[string]string{key: value}}})) > 0
}
