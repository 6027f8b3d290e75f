package snapshot

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Unoffered stands for all resources that no node offers: pods may name any number of them, and a column of each would
// be retained for every node. A member that requests one of them takes one of it, and no node has any.
const Unoffered corev1.ResourceName = "lockstep.dev/unoffered"

// mostNamed is the number of resources in place of Unoffered that a shortfall names.
const mostNamed = 8

// Offered returns the resources of those asked for that an index has to count: the ones that it counts already, that
// some node offers or that served, which may be nil, reports; and Unoffered if there are others.
func (x *Indices) Offered(
	nodes []fwk.NodeInfo, asked []corev1.ResourceName, served func(corev1.ResourceName) bool,
) []corev1.ResourceName {
	known := x.plain.view.resources
	counted := make([]corev1.ResourceName, 0, len(asked))
	open := make(map[corev1.ResourceName]bool)
	for _, name := range asked {
		if slices.Contains(known, name) || served != nil && served(name) {
			counted = append(counted, name)
		} else {
			open[name] = true
		}
	}
	for i := 0; i < len(nodes) && len(open) > 0; i++ {
		for name := range nodes[i].GetAllocatable().GetScalarResources() {
			if open[name] {
				delete(open, name)
				counted = append(counted, name)
			}
		}
	}
	if len(open) > 0 {
		counted = append(counted, Unoffered)
	}
	slices.Sort(counted)
	return counted
}

// uncounted returns the resources that the pod requests and the view does not count, in alphabetical order.
func (v View) uncounted(asks corev1.ResourceList) []string {
	var names []string
	for name, quantity := range asks {
		if !quantity.IsZero() && !slices.Contains(v.resources, name) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// named returns the names of the view's resources as topology speaks of them, with those of a gang in place of
// Unoffered.
func (v View) named(uncounted []string) []string {
	names := namesOf(v.resources)
	at := slices.Index(v.resources, Unoffered)
	if at < 0 || len(uncounted) == 0 {
		return names
	}
	slices.Sort(uncounted)
	uncounted = slices.Compact(uncounted)
	names[at] = strings.Join(uncounted[:min(len(uncounted), mostNamed)], ", ")
	if more := len(uncounted) - mostNamed; more > 0 {
		names[at] += fmt.Sprintf(" and %d others", more)
	}
	return names
}
