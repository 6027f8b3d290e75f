package devices

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
)

// manager is the scheduler's own as the in-tree plugin sees it: while a planned pod is prepared it shows only what the allocator has
// to know for the planned node, and it tells the stock of every allocation at once.
type manager struct {
	fwk.SharedDRAManager
	stock func() *Stock
	// focus is the planned node, "" for none. Only the scheduling loop asks.
	focus string
}

// ResourceSlices lists those of the focus.
func (m *manager) ResourceSlices() fwk.ResourceSliceLister { return lister{m} }

// ResourceClaims tracks what is taken of the focus.
func (m *manager) ResourceClaims() fwk.ResourceClaimTracker {
	return tracker{m.SharedDRAManager.ResourceClaims(), m}
}

type lister struct{ m *manager }

// ListWithDeviceTaintRules lists the slices that the allocator has to know.
func (l lister) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	if l.m.focus != "" {
		if slices, _, ok := l.m.stock().narrow(l.m.focus); ok {
			return slices, nil
		}
	}
	slices, err := l.m.SharedDRAManager.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, fmt.Errorf("listing ResourceSlices: %w", err)
	}
	return slices, nil
}

type tracker struct {
	fwk.ResourceClaimTracker
	m *manager
}

// GatherAllocatedState gathers what is taken of the pools that the allocator has to know.
func (t tracker) GatherAllocatedState() (*structured.AllocatedState, error) {
	if t.m.focus != "" {
		if _, taken, ok := t.m.stock().narrow(t.m.focus); ok {
			return &taken, nil
		}
	}
	taken, err := t.ResourceClaimTracker.GatherAllocatedState()
	if err != nil {
		return nil, fmt.Errorf("gathering allocated devices: %w", err)
	}
	return taken, nil
}

// SignalClaimPendingAllocation tells the stock too.
func (t tracker) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	if err := t.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim); err != nil {
		return fmt.Errorf("noting an allocation: %w", err)
	}
	t.m.stock().pend(uid, claim)
	return nil
}

// MaybeRemoveClaimPendingAllocation tells the stock too.
func (t tracker) MaybeRemoveClaimPendingAllocation(uid types.UID, force bool) bool {
	removed := t.ResourceClaimTracker.MaybeRemoveClaimPendingAllocation(uid, force)
	if removed {
		t.m.stock().settle(uid, t.ResourceClaimTracker)
	}
	return removed
}

// AssumeClaimAfterAPICall tells the stock too.
func (t tracker) AssumeClaimAfterAPICall(claim *resourcev1.ResourceClaim) error {
	if err := t.ResourceClaimTracker.AssumeClaimAfterAPICall(claim); err != nil {
		return fmt.Errorf("noting a written claim: %w", err)
	}
	t.m.stock().learn(claim)
	return nil
}

// AssumedClaimRestore tells the stock too.
func (t tracker) AssumedClaimRestore(namespace, name string) {
	t.ResourceClaimTracker.AssumedClaimRestore(namespace, name)
	if claim, err := t.Get(namespace, name); err == nil {
		t.m.stock().learn(claim)
	}
}
