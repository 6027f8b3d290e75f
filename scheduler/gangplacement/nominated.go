package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// spoken is the room, by node, that others have a claim to: what is held for members to come, and what gangs of the same or
// a higher priority made free by preemption and did not take yet. The framework's filters count the latter; a plan that did
// not would be refused, and the next preemption would look for still more victims.
func (p *GangPlacement) spoken(q question, view snapshot.View) map[string]corev1.ResourceList {
	room := p.slots.FromOthers(q.key)
	if !p.othersPreempt(q.key) {
		return room
	}
	if room == nil {
		room = make(map[string]corev1.ResourceList)
	}
	for _, info := range view.Infos {
		if info == nil {
			continue
		}
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

// othersPreempt reports whether a gang but this one waits for its victims to go: only then is it worth asking every node.
func (p *GangPlacement) othersPreempt(gang types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, own := p.preempting[gang]
	return len(p.preempting) > 1 || len(p.preempting) == 1 && !own
}
