package devices

import (
	"context"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Holds returns the units with the capacity that the departure of each would give back to the question, in members per
// node, and with the number of accelerators of its claims (Devices), by which its loss is counted. The capacity is that
// of each unit alone: two units may free more together. The units of asked.Draining follow.
func (s *Stock) Holds(ctx context.Context, asked Asked, units []snapshot.Unit) []snapshot.Unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(units)
	for i := range out {
		claims := s.claimsOf(out[i])
		if len(claims) == 0 {
			continue
		}
		out[i].Devices = s.accelerators(claims)
		if len(asked.demands) == 0 {
			continue
		}
		out[i].Holds = slices.Concat(out[i].Holds, s.freed(ctx, asked, nodesOf(units[i]), uidsOf(claims)))
	}
	return append(out, asked.draining...)
}

// Held returns the number of accelerators that the claims of a unit have.
func (s *Stock) Held(u snapshot.Unit) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accelerators(s.claimsOf(u))
}

func at(c topology.Capacity, resource int) int64 {
	if resource < len(c) {
		return c[resource]
	}
	return 0
}

// nodesOf are the nodes on which the unit holds anything, each once.
func nodesOf(u snapshot.Unit) []int {
	nodes := make([]int, len(u.Holds))
	for i, held := range u.Holds {
		nodes[i] = held.Node
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// claimsOf are the claims that are given back when the unit leaves: those of its pods, and those that its group shares.
func (s *Stock) claimsOf(u snapshot.Unit) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	seen, own := sets.New[types.UID](), consumersOf(u)
	add := func(namespace string, name *string) {
		if name == nil {
			return
		}
		claim, err := s.manager.ResourceClaims().Get(namespace, *name)
		if err != nil || seen.Has(claim.UID) {
			return
		}
		seen.Insert(claim.UID)
		if given := s.manager.ResourceClaims().GetPendingAllocation(claim.UID); given != nil { // it is being written
			claim = claim.DeepCopy()
			claim.Status.Allocation = given
		}
		if claim.Status.Allocation != nil && only(claim.Status.ReservedFor, own) {
			claims = append(claims, claim)
		}
	}
	for _, pod := range u.Pods {
		for i := range pod.Spec.ResourceClaims {
			name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err == nil {
				add(pod.Namespace, name)
			}
		}
		if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
			add(pod.Namespace, &extended.ResourceClaimName)
		}
	}
	return claims
}

// consumersOf returns the UIDs by which claims are reserved for the unit: those of its pods and of its group.
func consumersOf(u snapshot.Unit) sets.Set[types.UID] {
	own := make(sets.Set[types.UID], len(u.Pods)+1)
	for _, pod := range u.Pods {
		own.Insert(pod.UID)
	}
	if u.Group != nil {
		own.Insert(u.Group.UID)
	}
	return own
}

func uidsOf(claims []*resourcev1.ResourceClaim) []types.UID {
	uids := make([]types.UID, len(claims))
	for i, claim := range claims {
		uids[i] = claim.UID
	}
	return uids
}

// accelerators returns the number of devices of classes that stand for an extended resource. If no device of any of the
// claims has such a class, it returns the number of all devices. Claims made for extended resources do not count: their
// pods request these by name. Neither do channels.
func (s *Stock) accelerators(claims []*resourcev1.ResourceClaim) int64 {
	var named, all int64
	for _, claim := range claims {
		if isExtended(claim) {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			class := classOf(claim, result.Request)
			if result.AdminAccess != nil && *result.AdminAccess || class == channelClass {
				continue
			}
			all++
			if of := (objects{s.manager}).Class(class); of != nil && of.Spec.ExtendedResourceName != nil {
				named++
			}
		}
	}
	if named > 0 {
		return named
	}
	return all
}

// classOf is the device class of a request, or of the alternative that was taken (request/alternative).
func classOf(claim *resourcev1.ResourceClaim, name string) string {
	request, alternative, _ := strings.Cut(name, "/")
	for _, r := range claim.Spec.Devices.Requests {
		if r.Name != request {
			continue
		}
		if r.Exactly != nil {
			return r.Exactly.DeviceClassName
		}
		for _, sub := range r.FirstAvailable {
			if sub.Name == alternative {
				return sub.DeviceClassName
			}
		}
	}
	return ""
}

// Suppose lets the stock be as if these units had left, until the returned function is called.
func (s *Stock) Suppose(gone []snapshot.Unit) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacate(gone)
	for _, u := range gone {
		for _, uid := range slices.Concat(uidsOf(s.claimsOf(u)), u.Claims) {
			s.supposed[uid] = true
			s.ledger.Remove(uid)
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for uid := range s.supposed {
			if claim, writes := s.pending[uid]; writes { // the caches do not show it
				s.ledger.Assume(uid, claim.Status.Allocation)
				continue
			}
			s.claims[uid] = nil // to be taken in again
		}
		clear(s.supposed)
		s.vacated = nil
	}
}

// only reports whether the claim is reserved for these consumers alone.
func only(reserved []resourcev1.ResourceClaimConsumerReference, own sets.Set[types.UID]) bool {
	return !slices.ContainsFunc(reserved, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return !own.Has(r.UID)
	})
}
