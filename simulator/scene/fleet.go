package scene

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/topology"
)

// settle puts the fleet's nodes into the scene, empty.
func (s *Scene) settle(f fleet.Fleet) error {
	profile, err := config.Placement(nil)
	if err != nil {
		return fmt.Errorf("reading which resources are accelerators: %w", err)
	}
	devices := f.Accelerators()
	name, err := accelerator(f.Nodes, devices, profile.Accelerators)
	if err != nil {
		return err
	}
	s.Resources = []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, name}
	s.Accelerator = len(s.Resources) - 1
	nodes := make([]topology.Node, len(f.Nodes))
	for i, node := range f.Nodes {
		nodes[i] = topology.Node{Name: node.Name, Labels: node.Labels}
	}
	discovered := topology.Discovered(nodes)
	for i, node := range nodes {
		nodes[i] = topology.WithClique(node, discovered)
	}
	if s.Ledger.Tree, err = topology.NewTree(topology.DetectLevels(nodes), nodes); err != nil {
		return fmt.Errorf("indexing the fleet's nodes: %w", err)
	}
	s.Nodes = make([]*corev1.Node, len(nodes))
	s.Closed, s.Devices = make([]bool, len(nodes)), make([]bool, len(nodes))
	s.Ledger.Free, s.Ledger.Total = make([]topology.Capacity, len(nodes)), make([]topology.Capacity, len(nodes))
	for i := range f.Nodes {
		node := f.Nodes[i].DeepCopy()
		at, _ := s.Ledger.Tree.Index(node.Name)
		if count, published := devices[node.Name]; published {
			s.Devices[at] = true
			amount := *resource.NewQuantity(count, resource.DecimalSI)
			node.Status.Capacity[name], node.Status.Allocatable[name] = amount, amount
		}
		s.Nodes[at], s.Closed[at] = node, closed(node, profile.Accelerators)
		s.Ledger.Total[at] = s.capacity(node.Status.Allocatable)
		s.Ledger.Free[at] = slices.Clone(s.Ledger.Total[at])
	}
	return nil
}

// accelerator is the resource that the fleet counts its accelerators by: of several that which most nodes list, and then the
// first by name. Devices of drivers go by the name that their class serves for the first of the known ones.
func accelerator(
	nodes []corev1.Node, devices map[string]int64, known []string,
) (corev1.ResourceName, error) {
	count := make(map[string]int)
	for i := range nodes {
		for _, name := range known {
			if amount, ok := nodes[i].Status.Allocatable[corev1.ResourceName(name)]; ok && !amount.IsZero() {
				count[name]++
			}
		}
	}
	if len(devices) > 0 && len(known) > 0 {
		count[known[0]] += len(devices)
	}
	best := ""
	for name, n := range count {
		if best == "" || cmp.Or(cmp.Compare(n, count[best]), cmp.Compare(best, name)) > 0 {
			best = name
		}
	}
	if best == "" {
		return "", &badinput.Error{
			What: "the fleet has no accelerators", Mend: "name one whose nodes have some, as capacity or as devices",
		}
	}
	return corev1.ResourceName(best), nil
}

// closed reports whether the node takes no pods of jobs.
func closed(node *corev1.Node, accelerators []string) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(accelerators, t.Key)
	})
}

// capacity is a resource list by the scene's resources; a node that does not say how many pods it takes has room for 110.
func (s *Scene) capacity(list corev1.ResourceList) topology.Capacity {
	const usual = 110
	out := make(topology.Capacity, len(s.Resources))
	for i, name := range s.Resources {
		quantity, ok := list[name]
		switch {
		case !ok && name == corev1.ResourcePods:
			out[i] = usual
		case name == corev1.ResourceCPU:
			out[i] = quantity.MilliValue()
		default:
			out[i] = quantity.Value()
		}
	}
	return out
}
