package defaultpreemption

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// mayLeave reports whether a victim may be evicted. Protected PriorityClasses are spared, except for system-critical
// preemptors.
func (p *LockstepDefaultPreemption) mayLeave(_ fwk.NodeInfo, victim preemption.Victim, by *corev1.Pod) bool {
	return corev1helpers.PodPriority(by) >= scheduling.SystemCriticalPriority || !p.losses.Protects(podsOf(victim))
}

// stays reports whether the first victim is reprieved before the other: the one that would lose more work is. Ties:
// kube-scheduler's order.
func (p *LockstepDefaultPreemption) stays(one, other preemption.Victim) bool {
	if a, b := p.losses.LostWork(podsOf(one)), p.losses.LostWork(podsOf(other)); a != b {
		return a > b
	}
	return preemption.MoreImportantVictim(one, other)
}

func podsOf(v preemption.Victim) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, info := range v.Pods() {
		pods = append(pods, info.GetPod())
	}
	return pods
}

// OrderedScoreFuncs prefers, of the nodes on which victims were found, those where the fewest disruption budgets are
// exceeded, then those where least is lost, then those whose victims are less important and fewer, then the first by
// name.
func (p *LockstepDefaultPreemption) OrderedScoreFuncs(
	_ context.Context, victims map[string]*extenderv1.Victims,
) []func(node string) int64 {
	lost, place := make(map[string]int64, len(victims)), make(map[string]int, len(victims))
	for i, node := range slices.Sorted(maps.Keys(victims)) {
		lost[node], place[node] = p.losses.LostWork(victims[node].Pods), i
	}
	return []func(node string) int64{
		func(node string) int64 { return -victims[node].NumPDBViolations },
		func(node string) int64 { return -lost[node] },
		func(node string) int64 { return -highest(victims[node].Pods) },
		func(node string) int64 { return -int64(len(victims[node].Pods)) },
		func(node string) int64 { return -int64(place[node]) },
	}
}

// highest returns the highest priority of the pods. There must be at least one.
func highest(pods []*corev1.Pod) int64 {
	first := corev1helpers.PodPriority(pods[0])
	for _, pod := range pods[1:] {
		first = max(first, corev1helpers.PodPriority(pod))
	}
	return int64(first)
}
