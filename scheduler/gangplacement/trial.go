package gangplacement

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
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

// poke calls the gang, again and again, until it is asked about the fleet as it is. While its victims are being deleted the
// call does nothing: in-tree preemption keeps it out of the queue.
func (p *GangPlacement) poke(gang types.NamespacedName, uid types.UID) {
	p.mu.Lock()
	p.preempting[gang] = uid
	p.mu.Unlock()
	p.clock.AfterFunc(pokePause, func() {
		p.mu.Lock()
		waits := p.preempting[gang] == uid
		p.mu.Unlock()
		if waits {
			p.lot.Call(gang)
			p.poke(gang, uid)
		}
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
