package nodehealth_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/topology"
)

func TestRules_Of(t *testing.T) {
	annotated := func(pairs ...string) *corev1.Node {
		node := &corev1.Node{}
		for i := 0; i < len(pairs); i += 2 {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, pairs[i], pairs[i+1])
		}
		return node
	}
	says := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: kind, Status: status}}}}
	}
	tainted := func(effect corev1.TaintEffect) *corev1.Node {
		return &corev1.Node{
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: topology.KeyAvoid, Value: "ticket-7", Effect: effect}}},
		}
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		want string
	}{
		"open":                   {&corev1.Node{}, ""},
		"maintenance":            {annotated(topology.KeyMaintenance, "clique"), "maintenance"},
		"to be avoided":          {annotated(topology.KeyAvoid, ""), "mark lockstep.dev/avoid"},
		"both":                   {annotated(topology.KeyAvoid, "", topology.KeyMaintenance, ""), "maintenance"},
		"by a taint":             {tainted(corev1.TaintEffectNoExecute), "mark lockstep.dev/avoid"},
		"by a wish":              {tainted(corev1.TaintEffectPreferNoSchedule), ""},
		"a bad condition":        {says("GPUMissing", "True"), "node condition GPUMissing"},
		"a good one":             {says("GPUMissing", "False"), ""},
		"a good condition false": {says("AcceleratedHardwareReady", "False"), "node condition AcceleratedHardwareReady"},
		"not known":              {says("AcceleratedHardwareReady", "Unknown"), ""},
		"what any tenant causes": {says("XIDErrors", "True"), ""},
		"another's business":     {says("Ready", "False"), ""},
	} {
		got := ""
		if mark, closed := nodehealth.Default().Of(test.node); closed {
			got = mark.Rule()
		}
		if got != test.want {
			t.Errorf("%s: closed by %q, want %q", name, got, test.want)
		}
	}
}

func TestSameConditions(t *testing.T) {
	node := func(pairs ...string) *corev1.Node {
		n := &corev1.Node{}
		for i := 0; i < len(pairs); i += 2 {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: corev1.NodeConditionType(
					pairs[i],
				),
				Status:            corev1.ConditionStatus(pairs[i+1]),
				LastHeartbeatTime: metav1.Now(),
			})
		}
		return n
	}
	if !nodehealth.SameConditions(node("A", "True", "B", "False"), node("B", "False", "A", "True")) {
		t.Error("another order is another state")
	}
	if nodehealth.SameConditions(node("A", "True"), node("A", "False")) ||
		nodehealth.SameConditions(node("A", "True"), node()) {
		t.Error("a change is none")
	}
}
