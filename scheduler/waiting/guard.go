package waiting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Guard keeps pods whose nodes the framework chooses off leased capacity.
type Guard struct {
	left map[string]leftover
	// resources are those of the leftovers, in their order.
	resources []corev1.ResourceName
}

// leftover is the usable part of a leased node.
type leftover struct {
	free topology.Capacity
	// claimed says that devices there are leased.
	claimed bool
}

// Clone returns the guard itself: nothing changes it.
func (g *Guard) Clone() fwk.StateData { return g }

// Single returns a question of a pod that is in no gang for Guard. It is nil for pods that ignore leases: those of
// DaemonSets that request no accelerators. Agents have to run on every node; with accelerators any tenant could take
// all that is leased.
func (r *Reader) Single(pod *corev1.Pod, nodes []fwk.NodeInfo) (*Question, error) {
	alone := []*corev1.Pod{pod}
	accelerators := snapshot.Accelerators(alone, r.Accelerators)
	if r.Stock != nil && r.Stock.Claims(alone) {
		accelerators += r.Stock.Wanted(nil, alone)
	}
	if accelerators == 0 && (snapshot.Unit{Pods: alone}).Returns() {
		return nil, nil
	}
	view, err := r.View(Asked{Waiting: []*corev1.Pod{pod}, Nodes: nodes})
	if err != nil {
		return nil, err
	}
	x := &Question{
		Waiting: alone, View: view, Kinds: r.Accelerators,
		Accelerators: accelerators, // the queue asks as much: leases bind both alike
		Protected:    r.protects(pod.Spec.PriorityClassName),
		Choices:      []devices.Asked{devices.NewAsked(view.Ledger(nil), topology.Gang{})},
	}
	x.Fleet = func() Fleet {
		reading := r.reading()
		return Fleet{Units: view.Contenders(r.Groups(), reading), Budgets: r.limits.Allowed()}
	}
	return x, nil
}

// Leasing reports whether there is any lease.
func (q *Queue) Leasing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.machine.Leases()) > 0
}

// Guard returns the guard of an entity, nil if no lease binds it.
func (q *Queue) Guard(x *Question) *Guard {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Clock.Now()
	e := q.entity(x, now)
	if !q.machine.Binds(e, now.Unix()) {
		return nil
	}
	snap := q.snapshot(x, now)
	g := &Guard{left: make(map[string]leftover), resources: x.View.Resources()}
	claimed := q.atlas.claimed()
	for node, free := range q.machine.Guard(e, &snap) {
		name := x.View.Tree.Node(node)
		g.left[name] = leftover{free: free, claimed: claimed[name]}
	}
	return g
}

// claimed are the nodes on which devices are leased.
func (a *atlas) claimed() map[string]bool {
	out := make(map[string]bool)
	for _, p := range a.places {
		for _, m := range p.members {
			if len(m.demands) > 0 || m.unknown {
				out[m.node] = true
			}
		}
	}
	return out
}

// Admits reports whether the pod may go to the node as far as leases are concerned.
func (g *Guard) Admits(pod *corev1.Pod, node string) bool {
	if g == nil {
		return true
	}
	left, leased := g.left[node]
	if !leased {
		return true
	}
	if left.claimed && len(pod.Spec.ResourceClaims) > 0 {
		return false
	}
	for name, n := range snapshot.Takes(pod) {
		if at := slices.Index(g.resources, name); at >= 0 && at < len(left.free) && n > left.free[at] {
			return false
		}
	}
	return true
}
