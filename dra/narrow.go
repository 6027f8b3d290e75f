package dra

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Narrow returns what the allocator has to know for one node and no more: the slices that the node sees, and what is taken of
// their pools. It is false for a node that is not known. The answer is the caller's.
func (f Fleet) Narrow(node string) ([]*resourcev1.ResourceSlice, structured.AllocatedState, bool) {
	v := f.Inventory.view(node)
	if v == nil {
		return nil, structured.AllocatedState{}, false
	}
	return v.published(), v.state(f.Ledger), true
}
