package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// closedKey is where a cycle keeps the nodes that are under maintenance, for a pod in no gang: of gangs they are rules.
const closedKey fwk.StateKey = Name + "/closed"

// closed are names of nodes.
type closed struct{ nodes sets.Set[string] }

// Clone returns the set itself: nobody changes it.
func (c *closed) Clone() fwk.StateData { return c }

// keepOff looks for nodes under maintenance before a pod in no gang is filtered. Most of the time there are none.
func (p *GangPlacement) keepOff(state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	p.mu.Lock()
	marked := len(p.marked)
	p.mu.Unlock()
	if marked == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	view, err := p.indices.Plain(nodes, nil)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if names := view.ClosedTo(pod); names != nil {
		state.Write(closedKey, &closed{names})
		return nil
	}
	return fwk.NewStatus(fwk.Skip)
}

// isClosed reports whether the node was found to be under maintenance.
func isClosed(state fwk.CycleState, node fwk.NodeInfo) bool {
	data, err := state.Read(closedKey)
	if err != nil {
		return false
	}
	c, ok := data.(*closed)
	return ok && c.nodes.Has(node.Node().Name)
}

// followNodes keeps count of the nodes that are marked, and of those with accelerators.
func (p *GangPlacement) followNodes() cache.ResourceEventHandler {
	follow := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			p.mark(node)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    follow,
		UpdateFunc: func(_, obj any) { follow(obj) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			if node, ok := obj.(*corev1.Node); ok {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.marked, node.UID)
				p.kinds.remove(node.Name)
			}
		},
	}
}

func (p *GangPlacement) mark(node *corev1.Node) {
	_, marked := snapshot.Maintenance(node)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds.remove(node.Name)
	p.kindOf(node).Insert(node.Name)
	if marked {
		p.marked[node.UID] = struct{}{}
	} else {
		delete(p.marked, node.UID)
	}
}

// marks are the nodes under maintenance.
type marks map[types.UID]struct{}

// reopened is for pods that were kept off: a mark was taken away, or changed.
func reopened(_ klog.Logger, _ *corev1.Pod, old, obj any) (fwk.QueueingHint, error) {
	before, ok := old.(*corev1.Node)
	after, same := obj.(*corev1.Node)
	if ok && same && snapshot.SameMaintenance(before, after) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
