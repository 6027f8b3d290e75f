package devices

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
)

// manager is the scheduler's own as the in-tree plugin sees it: while a pod is prepared it shows only the state that
// the allocator needs for it, and it reports every allocation to the stock at once.
type manager struct {
	fwk.SharedDRAManager
	stock func() *Stock
	// settled is called for claims whose allocation has been written, or given up.
	settled func(types.UID)
	// looksUp is set if the plugin looks devices up by name that are assigned already.
	looksUp bool
	// scope is the plugin's view. Only the scheduling loop uses it.
	scope scope
}

// scope is the part of the fleet that the allocator has to know for a pod: that of its planned node, nothing, or all of
// it.
type scope struct {
	node    string
	nothing bool
}

// ResourceSlices lists those in scope.
func (m *manager) ResourceSlices() fwk.ResourceSliceLister { return lister{m} }

// ResourceClaims tracks the allocated devices in scope.
func (m *manager) ResourceClaims() fwk.ResourceClaimTracker {
	return tracker{m.SharedDRAManager.ResourceClaims(), m}
}

type lister struct{ m *manager }

// ListWithDeviceTaintRules lists the slices that the allocator has to know.
func (l lister) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	if l.m.scope.nothing {
		return nil, nil
	}
	if l.m.scope.node != "" {
		if narrow, _, ok := l.m.stock().narrow(l.m.scope.node); ok {
			return narrow, nil
		}
	}
	all, err := l.m.SharedDRAManager.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, fmt.Errorf("listing ResourceSlices: %w", err)
	}
	return all, nil
}

type tracker struct {
	fwk.ResourceClaimTracker
	m *manager
}

// GatherAllocatedState gathers the allocated devices of the pools that the allocator has to know.
func (t tracker) GatherAllocatedState() (*structured.AllocatedState, error) {
	if t.m.scope.nothing {
		return &structured.AllocatedState{}, nil
	}
	if t.m.scope.node != "" {
		if _, taken, ok := t.m.stock().narrow(t.m.scope.node); ok {
			return &taken, nil
		}
	}
	taken, err := t.ResourceClaimTracker.GatherAllocatedState()
	if err != nil {
		return nil, fmt.Errorf("gathering allocated devices: %w", err)
	}
	return taken, nil
}

// SignalClaimPendingAllocation also reports the allocation to the stock.
func (t tracker) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	if err := t.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim); err != nil {
		return fmt.Errorf("noting an allocation: %w", err)
	}
	t.m.stock().pend(uid, claim, t.ResourceClaimTracker)
	return nil
}

// MaybeRemoveClaimPendingAllocation also reports the removal to the stock.
func (t tracker) MaybeRemoveClaimPendingAllocation(uid types.UID, force bool) bool {
	removed := t.ResourceClaimTracker.MaybeRemoveClaimPendingAllocation(uid, force)
	if removed {
		t.m.stock().settle(uid, t.ResourceClaimTracker)
		t.m.settled(uid)
	}
	return removed
}

// AssumeClaimAfterAPICall also reports the claim to the stock.
func (t tracker) AssumeClaimAfterAPICall(claim *resourcev1.ResourceClaim) error {
	if err := t.ResourceClaimTracker.AssumeClaimAfterAPICall(claim); err != nil {
		return fmt.Errorf("noting a written claim: %w", err)
	}
	t.m.stock().learn(claim)
	return nil
}

// AssumedClaimRestore also reports the claim to the stock.
func (t tracker) AssumedClaimRestore(namespace, name string) {
	t.ResourceClaimTracker.AssumedClaimRestore(namespace, name)
	if claim, err := t.Get(namespace, name); err == nil {
		t.m.stock().learn(claim)
	}
}

// scopeOf returns the allocator's input for a pod; node is its planned node, "" if it may go anywhere.
func (m *manager) scopeOf(pod *corev1.Pod, node string) scope {
	nothing := !m.looksUp && !backed(m.SharedDRAManager, pod) && m.served(pod)
	return scope{node: node, nothing: nothing}
}

// served reports whether nothing is left to assign to the claims of a pod: they have their devices already, or get
// those that were chosen for a member before it.
func (m *manager) served(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(m.claimsOf(pod), func(claim *resourcev1.ResourceClaim) bool {
		return claim == nil || claim.Status.Allocation == nil && !m.isPending(claim)
	})
}
