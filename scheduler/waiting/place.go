package waiting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// place is a leased place by node name, and the question of its owner.
type place struct {
	members []memberPlace
	// failed says that the owner has lost a member by a failure or an eviction; not all are being taken away by its
	// job.
	failed bool
	// lost lists the members that have left their places, kept is their sum.
	lost map[types.UID]Loss
	kept contention.Lost
	// sweep is that of an owner that has lost members.
	sweep contention.Sweep
	// preemptible says that the owner may be evicted for others.
	preemptible bool
	// ask is the owner's question in these coordinates.
	ask contention.Ask
	at  coordinates
}

// memberPlace is the place of one member.
type memberPlace struct {
	node string
	// takes is its demand of each resource.
	takes map[corev1.ResourceName]int64
	// demands are the devices that it claims; unknown says that it has claims without known demands.
	demands []*dra.Demand
	unknown bool
	// of is the member that has left the place; empty for places of members that have yet to arrive. It left at an
	// instant after it had used the place for some seconds.
	of         types.UID
	left, used int64
}

// memberPlaces returns the place of a lease in the coordinates of a question.
func (x *Question) memberPlaces(holds []topology.Held) []memberPlace {
	out := make([]memberPlace, len(holds))
	names, claimed := x.View.Resources(), x.Choices[0].Demands()
	for i, h := range holds {
		m := memberPlace{node: x.View.Tree.Node(h.Node), takes: make(map[corev1.ResourceName]int64)}
		for r, amount := range h.Demand {
			switch {
			case amount == 0:
			case r < len(names):
				m.takes[names[r]] = amount
			case r-len(names) < len(claimed):
				m.demands = append(m.demands, claimed[r-len(names)])
			}
		}
		out[i] = m
	}
	return out
}

// held returns a place in the coordinates of a question, without members on nodes that are not there. A member that
// claims the same devices as the question takes one of them; a member that claims other devices leaves none of the
// question's on its node.
func (x *Question) held(members []memberPlace) []topology.Held {
	out := make([]topology.Held, 0, len(members))
	names, claimed := x.View.Resources(), x.Choices[0].Demands()
	for _, m := range members {
		node, ok := x.View.Tree.Index(m.node)
		if !ok {
			continue
		}
		demand := make(topology.Capacity, len(names)+len(claimed))
		for r, name := range names {
			demand[r] = m.takes[name]
		}
		for k, of := range claimed {
			switch {
			case len(m.demands) == 0 && !m.unknown:
			case slices.ContainsFunc(m.demands, of.Same):
				demand[len(names)+k] = 1
			default:
				demand[len(names)+k] = allOf(x.Choices[0].Ledger, node, len(names)+k)
			}
		}
		out = append(out, topology.Held{Node: node, Demand: demand})
	}
	return out
}

// allOf returns all that a node has of a resource.
func allOf(l topology.Ledger, node, resource int) int64 {
	var n int64
	for _, c := range []topology.Capacity{l.Free[node], l.Total[node]} {
		if resource < len(c) {
			n = max(n, c[resource])
		}
	}
	return n
}

// room returns the capacity that a place takes by node.
func room(members []memberPlace) map[string]corev1.ResourceList {
	sums := make(map[string]map[corev1.ResourceName]int64)
	for _, m := range members {
		if sums[m.node] == nil {
			sums[m.node] = make(map[corev1.ResourceName]int64)
		}
		for name, n := range m.takes {
			sums[m.node][name] += n
		}
	}
	out := make(map[string]corev1.ResourceList, len(sums))
	for node, sum := range sums {
		out[node] = make(corev1.ResourceList, len(sum))
		for name, n := range sum {
			if name == corev1.ResourceCPU {
				out[node][name] = *resource.NewMilliQuantity(n, resource.DecimalSI)
			} else {
				out[node][name] = *resource.NewQuantity(n, resource.DecimalSI)
			}
		}
	}
	return out
}
