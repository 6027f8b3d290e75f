package gangplacement

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/dryrun"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// fleet is what a plan is made for.
type fleet int

const (
	asItIs fleet = iota
	// withoutVictims is what the fleet would be if a preemption had its way.
	withoutVictims
)

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
	p.memory.mu.Lock()
	p.memory.preempting[q.key] = x
	p.memory.mu.Unlock()
	p.follow(x)
}

func (p *GangPlacement) follow(x *preemption) {
	p.clock.AfterFunc(pokePause, func() {
		p.memory.mu.Lock()
		current := p.memory.preempting[x.gang] == x
		if current && !p.nominated(x) {
			current = false
			delete(p.memory.preempting, x.gang)
		}
		p.memory.mu.Unlock()
		if current {
			p.queue.Call(waiting.IDOf(x.gang))
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
	p.memory.mu.Lock()
	_, ok := p.memory.preempting[gang]
	delete(p.memory.preempting, gang)
	p.memory.mu.Unlock()
	if ok {
		p.queue.Again()
	}
}

// fleetOf is what the cycle is about: a preempting plugin says so in the context. A real question ends the calls for the gang.
func (p *GangPlacement) fleetOf(ctx context.Context, gang types.NamespacedName) fleet {
	if dryrun.Is(ctx) {
		return withoutVictims
	}
	p.asked(gang)
	return asItIs
}
