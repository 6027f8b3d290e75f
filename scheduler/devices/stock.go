// Package devices puts devices into the scheduler's questions: it keeps the state of package dra in step with the
// scheduler's, reads the claims of a gang's members, and lets a plan use only nodes whose devices can serve them. The
// devices of a member are chosen later, by the allocator of the in-tree plugin on the planned node.
package devices

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/dra"
)

// Stock holds the published and the allocated devices, as the scheduler sees them. It is safe for concurrent use:
// claims are bound while the next gang is planned.
type Stock struct {
	mu        sync.Mutex
	manager   fwk.SharedDRAManager
	fitter    *dra.Fitter
	inventory *dra.Inventory
	ledger    *dra.Ledger
	slices    map[string]*resourcev1.ResourceSlice
	claims    map[types.UID]*resourcev1.ResourceClaim
	nodes     map[string]*corev1.Node
	// pending are claims whose allocation is not written yet, with that allocation. Claims that stand for extended
	// resources do not exist before that, so their absence from lists does not mean that they are deleted.
	pending map[types.UID]*resourcev1.ResourceClaim
	// supposed are the claims that are supposed to be given back.
	supposed map[types.UID]bool
	// returned are the claims that are being given back, by the version that is.
	returned map[types.UID]string
	// vacated are the ComputeDomains that are supposed to have left their nodes.
	vacated map[types.UID]bool
	left    leftovers
}

// newStock makes an empty stock of a cluster with these features; the manager is the in-tree plugin's, so that both see
// the same.
func newStock(manager fwk.SharedDRAManager, features dra.Features) *Stock {
	return &Stock{
		manager: manager, fitter: dra.NewFitter(features, 0), inventory: dra.NewInventory(nil), ledger: dra.NewLedger(),
		slices: make(map[string]*resourcev1.ResourceSlice), claims: make(map[types.UID]*resourcev1.ResourceClaim),
		nodes: make(map[string]*corev1.Node), pending: make(map[types.UID]*resourcev1.ResourceClaim),
		supposed: make(map[types.UID]bool), returned: make(map[types.UID]string),
		left: leftovers{claims: make(map[types.UID]leftover)},
	}
}

// update brings the stock up to date. Objects of the scheduler's caches are never changed in place, so only those that
// are others than before are looked at.
func (s *Stock) update(q Question) error {
	published, err := s.manager.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return fmt.Errorf("listing ResourceSlices: %w", err)
	}
	claims, err := s.manager.ResourceClaims().List()
	if err != nil {
		return fmt.Errorf("listing ResourceClaims: %w", err)
	}
	follow(s.slices, published, func(o *resourcev1.ResourceSlice) string { return o.Name },
		s.inventory.SetSlice, s.inventory.RemoveSlice)
	follow(s.claims, claims, func(o *resourcev1.ResourceClaim) types.UID { return o.UID },
		func(claim *resourcev1.ResourceClaim) {
			// The caches do not show an allocation that is being written.
			if _, writes := s.pending[claim.UID]; !writes && !s.supposed[claim.UID] {
				s.ledger.Set(claim)
			}
			s.left.note(claim, q.Lives, q.Now)
		}, func(uid types.UID) {
			s.ledger.Remove(uid)
			s.left.forget(uid, q.Now)
			delete(s.returned, uid)
		})
	objects := make([]*corev1.Node, len(q.Nodes))
	for i, info := range q.Nodes {
		objects[i] = info.Node()
	}
	follow(s.nodes, objects, func(o *corev1.Node) string { return o.Name }, s.inventory.SetNode, s.inventory.RemoveNode)
	return nil
}

// follow updates known to the current objects, and reports those that were added, changed or removed.
func follow[K comparable, O any](known map[K]*O, now []*O, key func(*O) K, set func(*O), remove func(K)) {
	for _, object := range now {
		if k := key(object); known[k] != object {
			known[k] = object
			set(object)
		}
	}
	if len(known) == len(now) { // now is a subset of known
		return
	}
	there := make(map[K]bool, len(now))
	for _, object := range now {
		there[key(object)] = true
	}
	for k := range known {
		if !there[k] {
			delete(known, k)
			remove(k)
		}
	}
}

func (s *Stock) fleet() dra.Fleet { return dra.Fleet{Inventory: s.inventory, Ledger: s.ledger} }

// fleetWithout is the fleet in which the devices of these claims are free.
func (s *Stock) fleetWithout(claims []types.UID) dra.Fleet {
	return dra.Fleet{Inventory: s.inventory, Ledger: s.ledger.WithoutClaims(claims...)}
}

// objects finds claims and classes where the in-tree plugin does.
type objects struct{ fwk.SharedDRAManager }

// Claim is nil for one that does not exist.
func (o objects) Claim(namespace, name string) *resourcev1.ResourceClaim {
	claim, err := o.ResourceClaims().Get(namespace, name)
	if err != nil {
		return nil
	}
	return claim
}

// Template is always nil: a pod is queued when its claims have been made.
func (objects) Template(string, string) *resourcev1.ResourceClaimTemplate { return nil }

// Class is nil for one that does not exist.
func (o objects) Class(name string) *resourcev1.DeviceClass {
	class, err := o.DeviceClasses().Get(name)
	if err != nil {
		return nil
	}
	return class
}

// Extended is the class that stands for an extended resource, nil if none does.
func (o objects) Extended(name corev1.ResourceName) *resourcev1.DeviceClass {
	return o.DeviceClassResolver().GetDeviceClass(name)
}

// narrow returns the allocator's input for one node; false if the node is not known.
func (s *Stock) narrow(node string) ([]*resourcev1.ResourceSlice, structured.AllocatedState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet().Narrow(node)
}

// learn takes in the current version of a claim. It is known from now on, so that its deletion is noticed, but not by
// this object: the caches may never show it.
func (s *Stock) learn(claim *resourcev1.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(claim)
}

func (s *Stock) take(claim *resourcev1.ResourceClaim) {
	s.claims[claim.UID] = nil
	s.ledger.Set(claim)
}

// pend takes in an allocation that is about to be written. The tracker does not note it if the claim has one by now,
// and members that share a claim are bound side by side: the note may be removed again. Then the caches' version
// counts.
func (s *Stock) pend(uid types.UID, claim *resourcev1.ResourceClaim, claims fwk.ResourceClaimTracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if claims.GetPendingAllocation(uid) == nil {
		s.take(current(uid, claim, claims))
		return
	}
	s.pending[uid] = claim
	delete(s.claims, uid)
	s.ledger.Assume(uid, claim.Status.Allocation)
}

// settle takes in the result of such an allocation: the caches know it by now, or it is not to be. If the next one has
// been noted meanwhile, that one is pending.
func (s *Stock) settle(uid types.UID, claims fwk.ResourceClaimTracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	claim, known := s.pending[uid]
	if !known || claims.GetPendingAllocation(uid) != nil {
		return
	}
	delete(s.pending, uid)
	s.take(current(uid, claim, claims))
}

// current returns the caches' version of a claim; a claim that is deleted has no devices.
func current(
	uid types.UID, claim *resourcev1.ResourceClaim, claims fwk.ResourceClaimTracker,
) *resourcev1.ResourceClaim {
	now, err := claims.Get(claim.Namespace, claim.Name)
	if err == nil && now.UID == uid {
		return now
	}
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{UID: uid}}
}
