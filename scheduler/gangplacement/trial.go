package gangplacement

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// fleet is what a plan is made for.
type fleet int

const (
	asItIs fleet = iota
	// withoutVictims is what the fleet would be if a preemption had its way.
	withoutVictims
)

// PodGroupPostFilter never helps. It is asked before the plugin that preempts, and remembers for which gang that will ask
// what would be.
func (p *GangPlacement) PodGroupPostFilter(
	_ context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, _ fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	if group := info.GetPodGroup(); group != nil {
		p.preempts = types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// pokePause is how long a gang whose preemption seemed to help waits until it is called again. In-tree preemption calls it
// when its last victim is gone; if the victims were gone before it came to delete them, it does not (1.37.1), and the gang
// would wait for the queue's flush, five minutes.
const pokePause = 2 * time.Second

// preemption is the wait of one gang for its victims to go.
type preemption struct {
	gang types.NamespacedName
	// nodes are those that the plan gives to the gang.
	nodes []string
}

// poke calls the gang, again and again, until it is asked about the fleet as it is; one preemption is followed at a time.
// While the victims are being deleted a call does nothing: in-tree preemption keeps the gang out of the queue. A plan that
// the filters refused led to no preemption, and its gang waits for the queue's timer as others do.
func (p *GangPlacement) poke(q question, plan *plan) {
	x := &preemption{gang: q.key}
	for _, pin := range plan.pins {
		x.nodes = append(x.nodes, pin.node)
	}
	p.mu.Lock()
	p.preempting[q.key] = x
	p.mu.Unlock()
	p.follow(x)
}

func (p *GangPlacement) follow(x *preemption) {
	p.clock.AfterFunc(pokePause, func() {
		p.mu.Lock()
		current := p.preempting[x.gang] == x
		if current && !p.nominated(x) {
			current = false
			delete(p.preempting, x.gang)
		}
		p.mu.Unlock()
		if current {
			p.lot.Call(x.gang)
			p.follow(x)
		}
	})
}

// nominated reports whether a member is nominated to one of the nodes: its victims are to go.
func (p *GangPlacement) nominated(x *preemption) bool {
	return slices.ContainsFunc(x.nodes, func(node string) bool {
		return slices.ContainsFunc(p.handle.NominatedPodsForNode(node), func(pod fwk.PodInfo) bool {
			of, ok := snapshot.GroupOf(pod.GetPod())
			return ok && of == x.gang
		})
	})
}

// asked ends the calls for a gang. It may go elsewhere now, and what its victims left is then free for others.
func (p *GangPlacement) asked(gang types.NamespacedName) {
	p.mu.Lock()
	_, ok := p.preempting[gang]
	delete(p.preempting, gang)
	p.mu.Unlock()
	if ok {
		p.lot.Change()
	}
}

// fleetOf tells preemption's question from the next cycle's for the same gang: its nodes are copies.
func (p *GangPlacement) fleetOf(q question) fleet {
	if len(q.parent.Nodes) == 0 {
		return asItIs
	}
	if p.preempts == q.key && q.parent.Nodes[0] != p.real {
		return withoutVictims
	}
	p.preempts, p.real = types.NamespacedName{}, q.parent.Nodes[0]
	p.asked(q.key)
	return asItIs
}
