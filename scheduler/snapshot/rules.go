package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// The rules that bar a node, in the words of a shortfall.
const (
	ruleCordoned = "cordoned"
	ruleTaint    = "untolerated taint"
	ruleAffinity = "node selector or affinity"
	ruleNodeName = "another node is named by the pod"
)

func hard(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// isRestricted reports whether a node is closed to some pods. A node that is not is judged only by the pod's requests.
// The marks that close it (see View.marks) do not count here.
func isRestricted(node *corev1.Node) bool {
	return node.Spec.Unschedulable ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return hard(&t) })
}

// picky reports whether the pod itself refuses some nodes.
func picky(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" || len(pod.Spec.NodeSelector) > 0 || requiredAffinity(pod) != nil
}

func requiredAffinity(pod *corev1.Pod) *corev1.NodeSelector {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// barred applies the rules of the scheduler's own filters to every node; nil if none is barred. The answer is shared.
func (v View) barred(pod *corev1.Pod) []string {
	if v.restricted == 0 && !picky(pod) {
		return nil
	}
	question := questionOf(pod)
	if known, ok := v.bars[question]; ok {
		return known
	}
	affinity, closed := nodeaffinity.GetRequiredNodeAffinity(pod), v.closed()
	out := make([]string, len(v.Infos))
	for i, info := range v.Infos {
		switch {
		case info == nil:
		case closed != nil && closed[i] != nil && !closed[i].Tolerated(pod):
			out[i] = closed[i].Rule()
		default:
			out[i] = rule(pod, affinity, info.Node())
		}
	}
	v.bars.keep(question, out)
	return out
}

func rule(pod *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, node *corev1.Node) string {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return ruleNodeName
	}
	if node.Spec.Unschedulable {
		cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
		if !corev1helpers.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, &cordon, true) {
			return ruleCordoned
		}
	}
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(
		klog.Logger{}, node.Spec.Taints, pod.Spec.Tolerations, hard, true)
	if found {
		return ruleTaint + " " + taint.Key
	}
	// An affinity that cannot be parsed matches no node.
	if ok, err := affinity.Match(node); err != nil || !ok {
		return ruleAffinity
	}
	return ""
}
