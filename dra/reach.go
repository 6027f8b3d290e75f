package dra

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// reach selects the nodes from which a device can be used: the node with the name, all nodes, or those that the
// selector matches. The zero reach is no node.
type reach struct {
	name     string
	all      bool
	selector *nodeaffinity.NodeSelector
}

// sliceReach returns the reach of all the slice's devices, nil if each has its own.
func sliceReach(s *resourcev1.ResourceSlice) *reach {
	if s.Spec.NodeName == nil && s.Spec.AllNodes == nil && s.Spec.NodeSelector == nil {
		if each := s.Spec.PerDeviceNodeSelection; each != nil && *each {
			return nil
		}
	}
	return newReach(s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector)
}

func deviceReach(d *resourcev1.Device) *reach {
	return newReach(d.NodeName, d.AllNodes, d.NodeSelector)
}

func newReach(name *string, all *bool, selector *corev1.NodeSelector) *reach {
	switch {
	case name != nil && *name != "":
		return &reach{name: *name}
	case all != nil && *all:
		return &reach{all: true}
	case selector != nil:
		// A selector that does not parse reaches nothing; the allocator reports the fault.
		if s, err := nodeaffinity.NewNodeSelector(selector); err == nil {
			return &reach{selector: s}
		}
	}
	return &reach{}
}

// holds reports whether the node is one of them.
func (r *reach) holds(n *corev1.Node) bool {
	return r.all || r.name != "" && r.name == n.Name || r.selector != nil && r.selector.Match(n)
}

// wide reports whether other nodes may be reached too.
func (r *reach) wide() bool { return r.name == "" }
