package direct

import (
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// product places as package topology does. It does not say why a gang does not fit.
type product struct{ refusal *contention.Refusal }

// Place implements contention.Placer.
func (p product) Place(l topology.Ledger, ask contention.Ask) contention.Answer {
	if slices.ContainsFunc(ask.Gang.Members, func(m topology.Member) bool { return m.Placed }) {
		return contention.Place(l, ask) // less of the surplus than all may fit beside members that run
	}
	gang := ask.Least()
	placement, fits, err := topology.Try(l, gang)
	switch {
	case err != nil:
		return contention.Answer{Gang: gang, Refusal: &contention.Refusal{Wrong: err}}
	case !fits:
		return contention.Answer{Gang: gang, Refusal: p.refusal}
	}
	return contention.Answer{Gang: gang, Placement: placement}
}

// Reserve implements contention.Placer.
func (product) Reserve(l topology.Ledger, ask contention.Ask, running []topology.Running) (topology.Reservation, bool) {
	r, fits, err := topology.Earliest(l, ask.Fewest(), running)
	return r, fits && err == nil
}

// Policy is another scheduler's placement. It is deterministic for a given seed, and does not modify its arguments.
type Policy interface {
	// Place returns the node of each member, in rank order, or false if it finds no place for all of them. Closed nodes
	// have nothing free in the ledger.
	Place(l topology.Ledger, gang topology.Gang) ([]int, bool)
}

// Confining is a Policy that places gangs inside one of several sets of nodes.
type Confining interface {
	Policy
	// Sets returns sets of nodes and a number of members: wherever Place places the gang, one of the sets holds that
	// many at least. nil says that they may be on any nodes.
	Sets(l topology.Ledger, gang topology.Gang) (sets [][]int, members int)
}

// places is the contention.Placer of a policy. With it, the machine's turn is EASY backfill over that policy's
// placements.
type places struct {
	policy  Policy
	nodes   int
	refusal *contention.Refusal
	// fail ends the scene with a fault.
	fail func(error)
}

func (p *player) places() places {
	return places{
		policy: p.options.Policy, nodes: p.scene.Ledger.Len(),
		refusal: &contention.Refusal{Short: &topology.Shortfall{}},
		fail: func(err error) {
			if p.fault == nil {
				p.fault = err
			}
		},
	}
}

// Place implements contention.Placer. It places all members or, if they have no place, the first ranks that are needed.
func (p places) Place(l topology.Ledger, ask contention.Ask) contention.Answer {
	gang := ask.Gang
	nodes, ok := p.policy.Place(l, gang)
	if !ok && ask.Needed > 0 && ask.Needed < len(gang.Members) {
		gang.Members = gang.Members[:ask.Needed]
		nodes, ok = p.policy.Place(l, gang)
	}
	if !ok || !p.sound(gang, nodes) {
		return contention.Answer{Gang: gang, Refusal: p.refusal}
	}
	return contention.Answer{Gang: gang, Placement: topology.Placement{Gang: gang.Name, Nodes: nodes}}
}

// sets are those of a policy that confines a gang which starts as a whole; nil for others.
func (p places) sets(l topology.Ledger, ask contention.Ask) (sets [][]int, members int) {
	policy, confines := p.policy.(Confining)
	if !confines || ask.Needed > 0 && ask.Needed < len(ask.Gang.Members) {
		return nil, 0
	}
	return policy.Sets(l, ask.Gang)
}

// sound reports whether the policy's answer can be carried out. If not, the scene ends with a fault.
func (p places) sound(gang topology.Gang, nodes []int) bool {
	if len(nodes) != len(gang.Members) {
		p.fail(
			fmt.Errorf("placing %s: the policy has %d nodes for %d members", gang.Name, len(nodes), len(gang.Members)),
		)
		return false
	}
	for _, node := range nodes {
		if node < 0 || node >= p.nodes {
			p.fail(fmt.Errorf("placing %s: the policy has a member on node %d of %d", gang.Name, node, p.nodes))
			return false
		}
	}
	return true
}

// Reserve implements contention.Placer. More free capacity is assumed never to harm, so that the search halves the
// instants.
func (p places) Reserve(
	l topology.Ledger, ask contention.Ask, running []topology.Running,
) (topology.Reservation, bool) {
	instants := []int64{topology.Now}
	for _, r := range running {
		if r.End != topology.EndUnknown {
			instants = append(instants, r.End)
		}
	}
	instants = slices.Compact(instants)
	var found topology.Reservation
	fits := func(at int64) bool {
		answer := p.Place(freed(l, running, at), ask)
		if answer.Refusal == nil {
			found = topology.Reservation{At: at, Placement: answer.Placement}
		}
		return answer.Refusal == nil
	}
	low, high := 0, len(instants)-1
	if !fits(instants[high]) {
		return topology.Reservation{}, false
	}
	for low < high {
		if middle := low + (high-low)/2; fits(instants[middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return found, true
}

// freed returns the ledger at an instant, when running units have ended as expected.
func freed(l topology.Ledger, running []topology.Running, at int64) topology.Ledger {
	l.Free = slices.Clone(l.Free)
	own := make([]bool, len(l.Free))
	for _, r := range running {
		if at == topology.Now || r.End > at {
			break // they are sorted
		}
		for _, held := range r.Holds {
			if !own[held.Node] {
				own[held.Node], l.Free[held.Node] = true, slices.Clone(l.Free[held.Node])
			}
			for resource, amount := range held.Demand {
				l.Free[held.Node][resource] += amount
			}
		}
	}
	return l
}
