// Package nodehealth selects the nodes that are to get nothing new: by the marks that administrators and health agents
// write on them, and by the failures and refusals of pods there. Nothing in it has a clock or a client.
package nodehealth

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/topology"
)

// Condition is a node condition that closes its node.
type Condition struct {
	// Type is the agent's name for it, such as GPUMissing.
	Type corev1.NodeConditionType
	// Status is its value when something is wrong: True, or False for conditions whose names say that all is well.
	Status corev1.ConditionStatus
}

// Rules select the marks and conditions that close a node. The zero value knows the marks of administrators only.
type Rules struct {
	// Conditions are those that close a node.
	Conditions []Condition
}

// Default returns the rules that hold if nothing is configured: conditions that agents in use write when a node cannot
// run pods that need its accelerators, its disks or its kernel. They are node-problem-detector's permanent ones, those
// that AKS adds for GPUs, and those of the EKS node monitoring agent. XIDErrors is left out: a program that crashes can
// cause it, and any tenant could close nodes.
func Default() Rules {
	bad := func(status corev1.ConditionStatus, types ...corev1.NodeConditionType) []Condition {
		out := make([]Condition, len(types))
		for i, t := range types {
			out[i] = Condition{t, status}
		}
		return out
	}
	return Rules{slices.Concat(
		bad(corev1.ConditionTrue, "KernelDeadlock", "ReadonlyFilesystem", "FilesystemCorruptionProblem",
			"GPUMissing", "NVLinkStatusInactive", "IBLinkFlapping", "UnhealthyNvidiaDevicePlugin"),
		bad(corev1.ConditionFalse, "AcceleratedHardwareReady", "KernelReady", "StorageReady"),
	)}
}

// Mark closes a node as a taint with this key and value and the effect NoSchedule would.
type Mark struct {
	// Key is topology.KeyMaintenance, topology.KeyAvoid or topology.KeyUnhealthy.
	Key string
	// Value is the level of the domain that maintenance closes, the type of the condition, or the text of an
	// administrator.
	Value string
}

// Of returns the mark that closes the node; it is false if none does.
func (r Rules) Of(node *corev1.Node) (Mark, bool) {
	if mark, marked := Marked(node); marked {
		return mark, true
	}
	for _, c := range r.Conditions {
		if slices.ContainsFunc(node.Status.Conditions, func(has corev1.NodeCondition) bool {
			return has.Type == c.Type && has.Status == c.Status
		}) {
			return Mark{topology.KeyUnhealthy, string(c.Type)}, true
		}
	}
	return Mark{}, false
}

// Same reports whether the same closes two versions of a node.
func (r Rules) Same(a, b *corev1.Node) bool {
	was, _ := r.Of(a)
	is, _ := r.Of(b)
	return was == is
}

// Marked returns the mark that an administrator has written on the node, as an annotation or as a taint (NoSchedule,
// NoExecute). Maintenance has precedence: it may close more than the node.
func Marked(node *corev1.Node) (Mark, bool) {
	for _, key := range []string{topology.KeyMaintenance, topology.KeyAvoid} {
		if value, ok := written(node, key); ok {
			return Mark{key, value}, true
		}
	}
	return Mark{}, false
}

// Avoided reports whether an administrator wants gangs to leave the node.
func Avoided(node *corev1.Node) bool {
	_, avoided := written(node, topology.KeyAvoid)
	return avoided
}

func written(node *corev1.Node, key string) (value string, ok bool) {
	if value, ok = node.Annotations[key]; ok {
		return value, true
	}
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == key && t.Effect != corev1.TaintEffectPreferNoSchedule
	})
	if at < 0 {
		return "", false
	}
	return node.Spec.Taints[at].Value, true
}

// SameConditions reports whether two versions of a node say the same by their conditions: heartbeats change their times
// only.
func SameConditions(a, b *corev1.Node) bool {
	status := func(n *corev1.Node) []Condition {
		out := make([]Condition, len(n.Status.Conditions))
		for i, c := range n.Status.Conditions {
			out[i] = Condition{c.Type, c.Status}
		}
		slices.SortFunc(out, func(x, y Condition) int { return cmp.Compare(x.Type, y.Type) })
		return out
	}
	return slices.Equal(status(a), status(b))
}

// Rule returns the reason for which a node with the mark is barred, in the words of a shortfall.
func (m Mark) Rule() string {
	switch m.Key {
	case topology.KeyMaintenance:
		return "maintenance"
	case topology.KeyAvoid:
		return "mark " + topology.KeyAvoid
	}
	return "node condition " + m.Value
}

// Tolerated reports whether the pod may use a node with the mark.
func (m Mark) Tolerated(pod *corev1.Pod) bool {
	taint := &corev1.Taint{Key: m.Key, Value: m.Value, Effect: corev1.TaintEffectNoSchedule}
	return corev1helpers.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, taint, true)
}
