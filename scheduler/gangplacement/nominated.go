package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// spoken takes the room off the ledger that gangs of the same or a higher priority have made free by in-tree preemption and did not take
// yet. The framework's filters count it; a plan that did not would be refused, and the next preemption would look for still more victims.
func (p *GangPlacement) spoken(q question) map[string]corev1.ResourceList {
	if !p.memory.othersPreempt(q.key) {
		return nil
	}
	room := make(map[string]corev1.ResourceList)
	for _, info := range q.parent.Nodes {
		node := info.Node().Name
		for _, nominated := range p.handle.NominatedPodsForNode(node) {
			pod := nominated.GetPod()
			group, _ := snapshot.GroupOf(pod)
			if group != q.key && corev1helpers.PodPriority(pod) >= corev1helpers.PodPriority(q.waiting[0]) {
				room[node] = quota.Add(room[node], snapshot.Requests(pod))
			}
		}
	}
	return room
}

// preempts reports whether a gang waits for the victims of in-tree preemption.
func (m *memory) preempts(gang types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.preempting[gang] != nil
}

// othersPreempt reports whether a gang but this one waits for its victims to go: only then is it worth asking every node.
func (m *memory) othersPreempt(gang types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, own := m.preempting[gang]
	return len(m.preempting) > 1 || len(m.preempting) == 1 && !own
}
