package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
)

// all makes the search for feasible nodes complete, adaptive makes it end when kube-scheduler's own part of the nodes is found: from
// 50 % of 100 nodes to 5 %, at least 100.
const (
	all      int32 = 100
	adaptive int32 = 0
)

// percentage is where the loop reads how many nodes it has to find for the pod that it schedules. The framework offers it to plugins,
// though its interface does not say so: the profile's own value, which only the loop reads.
type percentage interface{ PercentageOfNodesToScore() *int32 }

// searchAll has all nodes searched for the pod of this cycle: members of planned gangs need that, because the choice of a looser
// placement must not depend on where a search begins.
func (p *GangPlacement) searchAll() { p.search(all) }

// searchSome has the search for a pod without a plan end early, as in kube-scheduler, unless it could miss what Score looks for: the
// nodes without accelerators of a fleet that has both kinds.
func (p *GangPlacement) searchSome(pod *corev1.Pod) {
	if p.avoids(pod) {
		p.search(all)
		return
	}
	p.search(adaptive)
}

// search sets what part of the nodes is searched from now on.
func (p *GangPlacement) search(part int32) {
	of, ok := p.handle.(percentage)
	if !ok {
		return
	}
	if nodes := of.PercentageOfNodesToScore(); nodes != nil { // else the profile does not say, and nothing of it is to be changed
		*nodes = part
	}
}

// avoids reports whether Score keeps the pod off some nodes: it needs no accelerators, and the fleet has nodes with and without.
func (p *GangPlacement) avoids(pod *corev1.Pod) bool {
	return p.mixed() && !p.needsAccelerators(pod)
}

func (p *GangPlacement) needsAccelerators(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range p.memory.accelerators {
		if q := requests[name]; !q.IsZero() {
			return true
		}
	}
	return false
}

// kinds are the names of the nodes with and without accelerators.
type kinds struct{ with, without sets.Set[string] }

func newKinds() kinds { return kinds{with: sets.New[string](), without: sets.New[string]()} }

func (k kinds) remove(node string) {
	k.with.Delete(node)
	k.without.Delete(node)
}

// mixed reports whether the fleet has nodes with and without accelerators.
func (p *GangPlacement) mixed() bool {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	return p.memory.kinds.with.Len() > 0 && p.memory.kinds.without.Len() > 0
}

// kindOf is the set that a node belongs to.
func (p *GangPlacement) kindOf(node *corev1.Node) sets.Set[string] {
	for _, name := range p.memory.accelerators {
		if q, ok := node.Status.Allocatable[name]; ok && !q.IsZero() {
			return p.memory.kinds.with
		}
	}
	return p.memory.kinds.without
}
