package waiting

import (
	"slices"
	"strings"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// NeedsKey is the key of a cycle's state for the Needs of its gang, or of its pod that is in none.
const NeedsKey fwk.StateKey = "lockstep.dev/needs"

// Needs is the demand of a waiting gang, or of a pod in none, on preemption. It is valid as long as its cycle.
type Needs struct {
	Question *Question
	Outcome  Outcome
	// Place are the nodes of a pod's lease; empty for gangs, and without a lease.
	Place []string
}

// Clone returns the needs themselves: nothing changes them.
func (n *Needs) Clone() fwk.StateData { return n }

// NeedsOf returns the needs of a cycle, nil if it has none.
func NeedsOf(state interface {
	Read(key fwk.StateKey) (fwk.StateData, error)
},
) *Needs {
	data, err := state.Read(NeedsKey)
	if err != nil {
		return nil
	}
	needs, _ := data.(*Needs)
	return needs
}

// Request returns the fault of a request, for users.
func Request(err error) string { return strings.TrimPrefix(err.Error(), ErrRequest.Error()+": ") }

// Wrong reports that a gang's request cannot be read. The gang stays out until it, or the fleet, changes.
func (q *Queue) Wrong(group *schedulingv1beta1.PodGroup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	x := Question{Group: group}
	e := contention.Entity{ID: x.id(), Order: orderOf(group, nil), Question: "wrong/" + string(x.id())}
	for _, action := range q.machine.Refuse(e, contention.Wait{Cause: contention.WrongQuestion, At: contention.None}, q.now()) {
		q.act(nil, action)
	}
	q.waker.evaluated(e.ID)
}

// PreemptionRefused reports whether the framework's filters refused the place of an entity's victims: in-tree
// preemption asks them about each.
func (q *Queue) PreemptionRefused(id contention.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refusedPreemptions[id]
}

// EndHold ends the lease of an owner if it is for this reason.
func (q *Queue) EndHold(owner contention.ID, reason contention.Reason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.machine.Lease(owner); l != nil && l.Reason == reason {
		q.revoke(owner, contention.WhyArrived)
	}
}

// Call brings an entity back into the scheduling queue, whether or not Keeps holds it out.
func (q *Queue) Call(id contention.ID) {
	q.mu.Lock()
	q.waker.released[id] = true
	q.calls(id)
	q.mu.Unlock()
	q.wakeAll([]contention.ID{id})
}

// moveGrace is the duration of the lease on the place to which a gang moves: its survivors have to leave, and its job
// makes new members.
const moveGrace = 5 * time.Minute

// Move leases a place where a gang that lost members, and that has no room for them near the others, can start again as
// a whole. It is false if the gang has lost none that it needs, or fits nowhere.
func (q *Queue) Move(x *Question) (topology.Placement, bool) {
	if len(x.Running) == 0 || x.Needed() <= 0 || snapshot.Final(x.Group) {
		return topology.Placement{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events++
	now := q.clock.Clock.Now()
	snap, e := q.snapshot(x, now), q.entity(x, now)
	whole := contention.Ask{Gang: x.Choices[0].Gang, Needed: x.Needed() + len(x.Running)}
	whole.Gang.Members = slices.Clone(whole.Gang.Members)
	for i := range whole.Gang.Members {
		whole.Gang.Members[i].Placed, whole.Gang.Members[i].Node = false, 0
	}
	to, ok := q.machine.Whole(e, whole, &snap)
	if !ok {
		return to, false
	}
	l := contention.Lease{
		Owner:        e.ID,
		Order:        e.Order,
		Reason:       contention.Move,
		Accelerators: e.Accelerators,
		Expiry:       now.Add(moveGrace).Unix(),
		Sweep:        e.Sweep,
	}
	for rank, node := range to.Nodes {
		shape := whole.Gang.Shapes[whole.Gang.Members[rank].Shape]
		l.Holds = append(l.Holds, topology.Held{Node: node, Demand: shape.Demand})
	}
	for _, action := range q.machine.HoldIn(&snap, l) {
		q.act(x, action)
	}
	q.recheck(l.Expiry)
	return to, true
}
