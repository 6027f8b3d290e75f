package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// followNodes returns the handler that reports events of nodes to the queue and to the parts that follow nodes.
func (p *GangPlacement) followNodes() cache.ResourceEventHandler {
	changed := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			p.nodeChanged(node)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(old, obj any) {
			before, ok := old.(*corev1.Node)
			after, same := obj.(*corev1.Node)
			if ok && same {
				p.suspicion.nodeUpdated(before, after)
			}
			changed(obj)
		},
		DeleteFunc: func(obj any) {
			if node, ok := snapshot.ObjectOf[*corev1.Node](obj); ok {
				p.nodeDeleted(node)
			}
		},
	}
}

// nodeChanged reports a node that was added or updated.
func (p *GangPlacement) nodeChanged(node *corev1.Node) {
	p.queue.Node(node)
	p.versions.nodeChanged(node)
	p.sampler.nodeChanged(node)
	p.closed.nodeChanged(node)
}

// nodeDeleted reports a deleted node.
func (p *GangPlacement) nodeDeleted(node *corev1.Node) {
	p.queue.NodeGone(node.Name)
	p.versions.nodeDeleted(node.Name)
	p.sampler.nodeDeleted(node.Name)
	if p.closed.nodeDeleted(node.UID) { // its mark may have closed the domain around it
		p.queue.Settling()
	}
	p.suspicion.forgive(node.Name)
}

// groupDeleted forgets a deleted PodGroup, but not a later one of the same name.
func (p *GangPlacement) groupDeleted(obj any) {
	group, ok := snapshot.ObjectOf[*schedulingv1beta1.PodGroup](obj)
	if !ok {
		return
	}
	p.explain.Forget(group.UID)
	name := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	p.queue.Forget(waiting.IDOf(name))
	p.history.groupDeleted(name, group.UID)
	p.suspicion.groupDeleted(group.UID, p.clock.Now())
	p.preemption.end(name)
}
