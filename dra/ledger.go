package dra

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ledger holds the allocated devices, by claim. A branch of it answers a what-if: it stores only its own changes,
// shares the rest with the ledger that it was made from, and is valid until that one changes.
type Ledger struct {
	below  *Ledger
	pools  map[PoolID]*holding
	claims map[types.UID][]PoolID
}

// NewLedger reads the allocations of all claims; claims without one take nothing.
func NewLedger(claims ...*resourcev1.ResourceClaim) *Ledger {
	l := new(Ledger).Branch()
	l.below = nil
	for _, c := range claims {
		l.Set(c)
	}
	return l
}

// Branch returns a ledger that starts as this one.
func (l *Ledger) Branch() *Ledger {
	return &Ledger{below: l, pools: map[PoolID]*holding{}, claims: map[types.UID][]PoolID{}}
}

// WithoutClaims returns a branch in which the devices of these claims are free.
func (l *Ledger) WithoutClaims(uids ...types.UID) *Ledger {
	b := l.Branch()
	for _, uid := range uids {
		b.Remove(uid)
	}
	return b
}

// Set adds or updates a claim, with the allocation in its status.
func (l *Ledger) Set(c *resourcev1.ResourceClaim) { l.Assume(c.UID, c.Status.Allocation) }

// Assume records the allocation that a claim has, or is about to get; nil for none.
func (l *Ledger) Assume(claim types.UID, allocation *resourcev1.AllocationResult) {
	l.Remove(claim)
	if allocation == nil {
		return
	}
	byPool := map[PoolID][]taking{}
	for _, r := range allocation.Devices.Results {
		if r.AdminAccess != nil && *r.AdminAccess {
			continue // access for administration takes nothing
		}
		id := PoolID{r.Driver, r.Pool}
		t := taking{claim: claim, device: r.Device, consumed: r.ConsumedCapacity}
		if r.ShareID != nil {
			t.share = *r.ShareID
			t.shared = true
		}
		byPool[id] = append(byPool[id], t)
	}
	for id, taken := range byPool {
		l.pools[id] = l.holding(id).with(taken)
	}
	l.claims[claim] = slices.SortedFunc(maps.Keys(byPool), comparePools)
}

// Remove releases the devices of a claim; an unknown claim changes nothing, nor does a second Remove of a claim that a
// ledger below still lists.
func (l *Ledger) Remove(claim types.UID) {
	for _, id := range l.held(claim) {
		l.pools[id] = l.holding(id).without(claim)
	}
	delete(l.claims, claim)
}

// held returns the pools with devices of the claim.
func (l *Ledger) held(claim types.UID) []PoolID {
	for ; l != nil; l = l.below {
		if pools, known := l.claims[claim]; known {
			return pools
		}
	}
	return nil
}

// holding returns the allocations from a pool, nil if none.
func (l *Ledger) holding(id PoolID) *holding {
	for ; l != nil; l = l.below {
		if h, known := l.pools[id]; known {
			return h
		}
	}
	return nil
}
