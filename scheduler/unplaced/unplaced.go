// Package unplaced hands the question about a gang for which there is no room from the plugin that plans to the one that
// preempts: both ask the core about the same fleet, one who fits, the other who would have to leave.
package unplaced

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Gang is a gang for which there is no room, and what the core was asked about it. It is valid as long as its View is.
type Gang struct {
	Group *schedulingv1beta1.PodGroup
	// Waiting are the members without nodes; there is at least one.
	Waiting []*corev1.Pod
	View    snapshot.View
	Ledger  topology.Ledger
	Gang    topology.Gang
	// Accelerators are the resources that count when something is lost.
	Accelerators []corev1.ResourceName
	// Holds adds to units what else they would give back to the gang; nil adds nothing.
	Holds func([]snapshot.Unit) []snapshot.Unit
}

// Units are all that run.
func (g Gang) Units(groups fwk.PodGroupLister) []snapshot.Unit {
	units := g.View.Units(groups)
	if g.Holds != nil {
		units = g.Holds(units)
	}
	return units
}

// Runs reports whether members of the gang have nodes.
func (g Gang) Runs() bool {
	return slices.ContainsFunc(g.Gang.Members, func(m topology.Member) bool { return m.Placed })
}

// Outside is the gang as it may not use the place, by node, that is kept for another one which is before it: whoever is evicted there
// would be evicted for the other.
func (g Gang) Outside(place map[string]corev1.ResourceList, other string) Gang {
	kept := make(map[string]string, len(place))
	for node := range place {
		kept[node] = "kept for " + other
	}
	g.Gang = g.View.Without(g.Gang, kept)
	return g
}

// Desk is where the last such gang lies. The zero value is empty. Only the scheduling loop uses it.
type Desk struct {
	last *Gang
}

// Put replaces what lies there.
func (d *Desk) Put(gang Gang) { d.last = &gang }

// Clear takes away what lies there: another question was asked since.
func (d *Desk) Clear() { d.last = nil }

// Take is the gang of that PodGroup if it lies there; it lies there no more.
func (d *Desk) Take(group types.UID) (Gang, bool) {
	if d.last == nil || d.last.Group.UID != group {
		return Gang{}, false
	}
	gang := *d.last
	d.last = nil
	return gang, true
}
