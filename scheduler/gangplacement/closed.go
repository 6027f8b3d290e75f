package gangplacement

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// offKey is the key of a cycle's off, if the framework chooses the node of its pod.
const offKey fwk.StateKey = Name + "/off"

// off bars a pod from nodes: the marks that close them, each with its rule, and leases of earlier entities.
type off struct {
	closed map[string]string
	guard  *waiting.Guard
}

// Clone returns the value itself: nothing changes it.
func (o *off) Clone() fwk.StateData { return o }

// keepOff looks for nodes that the pod of a cycle without a plan may not use. Most of the time there are none.
func (p *GangPlacement) keepOff(state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	closed, leasing := p.closed.any(), p.queue.Leasing()
	if !closed && !leasing {
		return fwk.NewStatus(fwk.Skip)
	}
	x, err := p.reader.Single(pod, nodes)
	if err != nil {
		return fwk.AsStatus(err)
	}
	found := &off{}
	if closed {
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

// closedNodes follows the nodes that marks or conditions close to new pods.
type closedNodes struct {
	// rules select the marks and conditions that close a node. They never change.
	rules nodehealth.Rules

	// mu guards nodes: event handlers change them, and the scheduling loop reads their number.
	mu sync.Mutex
	// nodes holds the UIDs of the closed nodes.
	nodes sets.Set[types.UID]
}

func newClosedNodes(rules nodehealth.Rules) *closedNodes {
	return &closedNodes{rules: rules, nodes: sets.New[types.UID]()}
}

// any reports whether at least one node is closed.
func (c *closedNodes) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes.Len() > 0
}

// nodeChanged notes whether a node that was added or updated is closed.
func (c *closedNodes) nodeChanged(node *corev1.Node) {
	_, closed := c.rules.Of(node)
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed {
		c.nodes.Insert(node.UID)
	} else {
		c.nodes.Delete(node.UID)
	}
}

// nodeDeleted forgets a deleted node, and reports whether it was closed.
func (c *closedNodes) nodeDeleted(node types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	closed := c.nodes.Has(node)
	c.nodes.Delete(node)
	return closed
}

// reopened is the hint for pods that a closed node refused: the node is open, or is closed for another reason.
func (c *closedNodes) reopened(_ klog.Logger, _ *corev1.Pod, old, obj any) (fwk.QueueingHint, error) {
	before, ok := old.(*corev1.Node)
	after, same := obj.(*corev1.Node)
	if ok && same && c.rules.Same(before, after) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
