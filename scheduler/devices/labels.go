package devices

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// NodeLabels returns the keys of the node labels on which questions about devices depend: those by which published
// devices choose their nodes, and the one that names a node's ComputeDomain. They are in no order.
func (s *Stock) NodeLabels() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]bool{labelDomain: true}
	add := func(selector *corev1.NodeSelector) {
		if selector == nil {
			return
		}
		for _, term := range selector.NodeSelectorTerms {
			for _, expression := range term.MatchExpressions {
				keys[expression.Key] = true
			}
		}
	}
	for _, slice := range s.slices {
		if add(slice.Spec.NodeSelector); !ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
			continue
		}
		for i := range slice.Spec.Devices {
			add(slice.Spec.Devices[i].NodeSelector)
		}
	}
	return slices.Collect(maps.Keys(keys))
}
