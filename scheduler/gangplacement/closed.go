package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// offKey is where a cycle keeps what keeps its pod off nodes, if the framework chooses its node.
const offKey fwk.StateKey = Name + "/off"

// off is what keeps a pod off nodes: what closes them, each with its rule, and leases of earlier entities.
type off struct {
	closed map[string]string
	guard  *waiting.Guard
}

// Clone returns the value itself: nothing changes it.
func (o *off) Clone() fwk.StateData { return o }

// keepOff looks for nodes that the pod of a cycle without a plan may not use. Most of the time there are none.
func (p *GangPlacement) keepOff(state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	marked, leasing := p.memory.isMarked(), p.queue.Leasing()
	if !marked && !leasing {
		return fwk.NewStatus(fwk.Skip)
	}
	x, err := p.reader.Single(pod, nodes)
	if err != nil {
		return fwk.AsStatus(err)
	}
	found := &off{}
	if marked {
		view, err := p.reader.View(waiting.Asked{Waiting: []*corev1.Pod{pod}, Nodes: nodes})
		if err != nil {
			return fwk.AsStatus(err)
		}
		found.closed = view.ClosedTo(pod)
	}
	if x != nil && leasing {
		found.guard = p.queue.Guard(x)
	}
	if found.closed == nil && found.guard == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(offKey, found)
	return nil
}

// isOff reports why a pod may not use a node, "" if it may.
func isOff(state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) string {
	data, err := state.Read(offKey)
	if err != nil {
		return ""
	}
	o, ok := data.(*off)
	switch {
	case !ok:
	case o.closed[node.Node().Name] != "":
		return "the node is closed: " + o.closed[node.Node().Name]
	case !o.guard.Admits(pod, node.Node().Name):
		return "the node is reserved for a gang"
	}
	return ""
}

func (m *memory) isMarked() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.marked) > 0
}

// followNodes keeps count of the nodes that are marked, and of those with accelerators.
func (p *GangPlacement) followNodes() cache.ResourceEventHandler {
	follow := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			p.mark(node)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: follow,
		UpdateFunc: func(old, obj any) {
			p.forgive(old, obj)
			follow(obj)
		},
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			if node, ok := obj.(*corev1.Node); ok {
				p.queue.NodeGone(node.Name)
				p.memory.mu.Lock()
				defer p.memory.mu.Unlock()
				delete(p.memory.changed, node.Name)
				delete(p.memory.marked, node.UID)
				p.memory.strikes.Forgive(node.Name)
				p.memory.kinds.remove(node.Name)
			}
		},
	}
}

// forgive forgets the strikes against a node that an administrator has opened again.
func (p *GangPlacement) forgive(old, obj any) {
	before, ok := old.(*corev1.Node)
	after, same := obj.(*corev1.Node)
	if ok && same && before.Spec.Unschedulable && !after.Spec.Unschedulable {
		p.memory.mu.Lock()
		defer p.memory.mu.Unlock()
		p.memory.strikes.Forgive(after.Name)
	}
}

func (p *GangPlacement) mark(node *corev1.Node) {
	p.queue.Node(node)
	_, marked := p.health.Of(node)
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	p.memory.changed[node.Name] = node.ResourceVersion
	p.memory.kinds.remove(node.Name)
	p.kindOf(node).Insert(node.Name)
	if marked {
		p.memory.marked[node.UID] = struct{}{}
	} else {
		delete(p.memory.marked, node.UID)
	}
}

// marks are the nodes that are closed.
type marks map[types.UID]struct{}

// reopened is for pods that were kept off: what closed the node is over, or is another thing.
func (p *GangPlacement) reopened(_ klog.Logger, _ *corev1.Pod, old, obj any) (fwk.QueueingHint, error) {
	before, ok := old.(*corev1.Node)
	after, same := obj.(*corev1.Node)
	if ok && same && p.health.Same(before, after) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
