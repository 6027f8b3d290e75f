package direct

import (
	"fmt"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// Policy is somebody else's way to choose nodes. It is deterministic, given a seed of its own, and changes nothing of what
// it is handed.
type Policy interface {
	// Place returns the node of each member, in rank order, or false if it finds no place for all of them. Nodes that take
	// nothing have nothing free in the ledger.
	Place(l topology.Ledger, gang topology.Gang) ([]int, bool)
}

// leadBy is lead by a policy. If the gang has no room, none is asked behind it that could delay it, nor anybody with the
// same question.
func (e *player) leadBy(l *lane) {
	i, ask := e.ask(l)
	asked := e.measure(ask)
	gang, nodes, ok := e.placeBy(e.ledger, ask)
	if ok {
		asked.answered(true)
		e.start(i, gang, topology.Placement{Gang: gang.Name, Nodes: nodes})
		return
	}
	l.closed = 0
	if e.options.Discipline != Greedy {
		if kept := e.keepBy(ask); kept != nil {
			e.head.job = i
			e.keep(*kept)
			e.head.moved = false
		}
	}
	asked.answered(false)
}

// placeBy asks the policy for all members or, if they have no place, for as many first ranks as are needed.
func (e *player) placeBy(l topology.Ledger, ask decision.Ask) (topology.Gang, []int, bool) {
	gang := ask.Gang
	nodes, ok := e.options.Policy.Place(l, gang)
	if !ok && ask.Needed > 0 && ask.Needed < len(gang.Members) {
		gang.Members = gang.Members[:ask.Needed]
		nodes, ok = e.options.Policy.Place(l, gang)
	}
	if ok && !e.sound(gang, nodes) {
		return gang, nil, false
	}
	return gang, nodes, ok
}

// sound reports whether the policy's answer can be carried out; if not, the scene ends with this fault.
func (e *player) sound(gang topology.Gang, nodes []int) bool {
	if e.fault == nil && len(nodes) != len(gang.Members) {
		e.fault = fmt.Errorf("placing %s: the policy has %d nodes for %d members",
			gang.Name, len(nodes), len(gang.Members))
	}
	for _, node := range nodes {
		if e.fault == nil && (node < 0 || node >= e.ledger.Len()) {
			e.fault = fmt.Errorf("placing %s: the policy has a member on node %d of %d",
				gang.Name, node, e.ledger.Len())
		}
	}
	return e.fault == nil
}
