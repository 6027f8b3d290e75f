package snapshot

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
)

// bars remembers the nodes that pods may use: gangs have few kinds of selectors and tolerations, and evaluating every
// node of a large fleet costs more than the decision itself.
type bars map[string][]string

// mostBars is the number of retained answers: pods that name their node ask something else each time.
const mostBars = 64

func newBars() bars { return make(bars) }

func (b bars) keep(question string, answer []string) {
	if len(b) >= mostBars {
		clear(b)
	}
	b[question] = answer
}

// questionOf is everything about a pod that its rules for nodes depend on.
func questionOf(pod *corev1.Pod) string {
	text, err := json.Marshal([]any{
		pod.Spec.NodeName, pod.Spec.NodeSelector, requiredAffinity(pod), pod.Spec.Tolerations,
	})
	if err != nil { // these types can always be written
		return string(pod.UID)
	}
	return string(text)
}

// sameRules reports whether the same pods may use the node as before.
func sameRules(a, b *corev1.Node, health nodehealth.Rules) bool {
	return health.Same(a, b) && a.Spec.Unschedulable == b.Spec.Unschedulable && maps.Equal(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}
