package dra

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Narrow returns the allocator's input for one node: the slices that the node sees, and the allocations from their
// pools. It reports false for an unknown node. The caller owns the result.
func (f Fleet) Narrow(node string) ([]*resourcev1.ResourceSlice, structured.AllocatedState, bool) {
	v := f.Inventory.view(node)
	if v == nil {
		return nil, structured.AllocatedState{}, false
	}
	return v.published(), v.state(f.Ledger), true
}
