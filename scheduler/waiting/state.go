package waiting

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// State has to survive a fail-over; its entities are named. It can be written as JSON.
type State struct {
	Machine contention.State
	// Places are those of the leases, by owner.
	Places map[contention.ID][]EqualPlaces
}

// EqualPlaces are places of members with equal demands.
type EqualPlaces struct {
	// Nodes has an entry for each member.
	Nodes []string
	Takes map[corev1.ResourceName]int64
	// Claims says that members claim devices.
	Claims bool
}

// State returns the current state.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := State{Machine: q.machine.State(), Places: make(map[contention.ID][]EqualPlaces)}
	for i := range out.Machine.Leases {
		l := &out.Machine.Leases[i]
		l.Holds, l.Nodes = nil, nil // they are in coordinates that end with this process
		if p := q.atlas.places[l.Owner]; p != nil {
			out.Places[l.Owner] = together(p.members)
		}
	}
	return out
}

// together gathers equal places, in the order of their nodes.
func together(members []memberPlace) []EqualPlaces {
	byDemand := make(map[string]*EqualPlaces)
	for _, m := range members {
		key, err := json.Marshal(m.takes)
		if err != nil { // numbers by name can always be written
			continue
		}
		of := byDemand[string(key)]
		if of == nil {
			of = &EqualPlaces{Takes: m.takes}
			byDemand[string(key)] = of
		}
		of.Nodes, of.Claims = append(of.Nodes, m.node), of.Claims || len(m.demands) > 0 || m.unknown
	}
	out := make([]EqualPlaces, 0, len(byDemand))
	for _, key := range slices.Sorted(maps.Keys(byDemand)) {
		slices.Sort(byDemand[key].Nodes)
		out = append(out, *byDemand[key])
	}
	slices.SortStableFunc(out, func(a, b EqualPlaces) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return out
}

// Restore gives a new queue the state of another one. Owners that do not return within the machine's grace lose their
// leases.
func (q *Queue) Restore(s State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range s.Machine.Leases {
		l := &s.Machine.Leases[i]
		if q.machine.Lease(l.Owner) != nil {
			continue // its place is a newer one
		}
		p := q.atlas.of(l.Owner)
		p.sweep = l.Sweep
		for _, of := range s.Places[l.Owner] {
			for _, node := range of.Nodes {
				p.members = append(p.members, memberPlace{node: node, takes: of.Takes, unknown: of.Claims})
			}
		}
		l.Holds = make([]topology.Held, len(p.members)) // the first snapshot translates the places
	}
	q.machine.Restore(s.Machine, q.now())
	for _, action := range q.machine.Pass(q.now()) {
		q.act(nil, action)
	}
}

// Changes counts the changes to leases, and the evictions, since the beginning: a state is worth writing if it has
// changed.
func (q *Queue) Changes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changes
}
