package gangplacement

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/dryrun"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// fleet is the kind of fleet that a plan is made for.
type fleet int

const (
	asItIs fleet = iota
	// withoutVictims is the fleet after a preemption.
	withoutVictims
)

// fleetOf returns the fleet of the cycle: a preempting plugin marks the context.
func fleetOf(ctx context.Context) fleet {
	if dryrun.Is(ctx) {
		return withoutVictims
	}
	return asItIs
}

// rewakePause is the time after which a gang whose preemption seemed to help is called again. In-tree preemption calls
// it when its last victim is deleted; if the victims left before in-tree preemption deleted them, it does not (1.37.1),
// and the gang would wait for the queue's flush, five minutes.
const rewakePause = 2 * time.Second

// preemptionWatch follows the gangs for which in-tree preemption found a way, until their victims have left.
type preemptionWatch struct {
	clock     clock.WithDelayedExecution
	queue     *waiting.Queue
	nominator fwk.PodNominator

	// mu guards preempting: the scheduling loop adds gangs and takes them out, timers look whether theirs is still
	// there, and the handler of deleted PodGroups takes them out. The nominator is called under it; the queue is not.
	mu sync.Mutex
	// preempting holds the gangs that were not evaluated on the present fleet since their preemption.
	preempting map[types.NamespacedName]*preemption
}

// preemption is the wait of one gang for its victims to leave. It never changes: timers read it without a lock.
type preemption struct {
	gang types.NamespacedName
	// nodes are those that the plan gives to the gang.
	nodes []string
}

func newPreemptionWatch(
	clock clock.WithDelayedExecution, queue *waiting.Queue, nominator fwk.PodNominator,
) *preemptionWatch {
	return &preemptionWatch{
		clock: clock, queue: queue, nominator: nominator, preempting: make(map[types.NamespacedName]*preemption),
	}
}

// scheduleRewake calls the gang, again and again, until it is evaluated on the present fleet; one preemption is
// followed at a time. While the victims are being deleted a call does nothing: in-tree preemption keeps the gang out of
// the queue. A plan that the filters refused led to no preemption, and its gang waits for the queue's timer as others
// do.
func (w *preemptionWatch) scheduleRewake(gang types.NamespacedName, plan *plan) {
	x := &preemption{gang: gang}
	for _, pin := range plan.pins {
		x.nodes = append(x.nodes, pin.node)
	}
	w.mu.Lock()
	w.preempting[gang] = x
	w.mu.Unlock()
	w.rewakeLater(x)
}

// rewakeLater calls the gang after a pause, and again, while the preemption is the one that is followed.
func (w *preemptionWatch) rewakeLater(x *preemption) {
	w.clock.AfterFunc(rewakePause, func() {
		if w.continues(x) {
			w.queue.Call(waiting.IDOf(x.gang))
			w.rewakeLater(x)
		}
	})
}

// continues reports whether the preemption is still followed. It ends one that has no nominated member left.
func (w *preemptionWatch) continues(x *preemption) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.preempting[x.gang] != x {
		return false
	}
	if !w.nominated(x) {
		delete(w.preempting, x.gang)
		return false
	}
	return true
}

// nominated reports whether a member is nominated to one of the nodes: its victims are to leave.
func (w *preemptionWatch) nominated(x *preemption) bool {
	return slices.ContainsFunc(x.nodes, func(node string) bool {
		return slices.ContainsFunc(w.nominator.NominatedPodsForNode(node), func(pod fwk.PodInfo) bool {
			of, ok := snapshot.GroupOf(pod.GetPod())
			return ok && of == x.gang
		})
	})
}

// end ends the calls for a gang that is evaluated on the present fleet, or deleted. It may start elsewhere now, or
// never, so the room that its victims left is free for other gangs.
func (w *preemptionWatch) end(gang types.NamespacedName) {
	w.mu.Lock()
	_, ok := w.preempting[gang]
	delete(w.preempting, gang)
	w.mu.Unlock()
	if ok {
		w.queue.Again()
	}
}

// waits reports whether a gang waits for its victims to leave.
func (w *preemptionWatch) waits(gang types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.preempting[gang] != nil
}

// othersWait reports whether a gang but this one waits for its victims to leave: only then is it worth looking for
// nominations on every node.
func (w *preemptionWatch) othersWait(gang types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, own := w.preempting[gang]
	return len(w.preempting) > 1 || len(w.preempting) == 1 && !own
}
