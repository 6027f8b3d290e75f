package devices

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// leftovers are allocated claims whose consumers are gone. kube-controller-manager gives devices back after their pods
// have left, one claim at a time and with a limited client: for a large gang that takes minutes. Until then the devices
// belong to no unit, and a gang that had the pods evicted would evict the next ones for want of them.
type leftovers struct {
	claims map[types.UID]leftover
	// moved is the instant at which one was found or given back last. If that is longer ago than drain, no controller
	// gives them back.
	moved time.Time

	// departed are the claims of consumers that have left since the last question; of too many, all are looked through
	// instead. The lock is theirs: questions take long.
	mu       sync.Mutex
	departed map[types.NamespacedName]bool
	tooMany  bool
}

// mostDeparted bounds departed: where no gang claims devices, no question is asked.
const mostDeparted = 100_000

// leftover is a claim that is left over since an instant.
type leftover struct {
	claim *resourcev1.ResourceClaim
	since time.Time
}

// longest bounds the wait for one claim while others are given back: at twenty requests a second, 12,000 are before it.
const longest = 10 * time.Minute

// Lives reports whether a consumer of a claim in the namespace may still use it.
type Lives func(namespace string, consumer resourcev1.ResourceClaimConsumerReference) bool

// Departed notes that a consumer of claims has left: a pod that has ended or is deleted, a deleted PodGroup, or what an
// informer knows of either. Other objects have no claims.
func (s *Stock) Departed(consumer any) {
	switch of := consumer.(type) {
	case cache.DeletedFinalStateUnknown:
		s.Departed(of.Obj)
	case *corev1.Pod:
		for i := range of.Spec.ResourceClaims {
			s.left.leave(of.Namespace, claimNameOf(of, nil, &of.Spec.ResourceClaims[i]))
		}
		if extended := of.Status.ExtendedResourceClaimStatus; extended != nil {
			s.left.leave(of.Namespace, extended.ResourceClaimName)
		}
	case *schedulingv1beta1.PodGroup:
		for i := range of.Spec.ResourceClaims {
			name, _, err := resourceclaim.NameFromPodGroup(of, &of.Spec.ResourceClaims[i])
			if err == nil && name != nil {
				s.left.leave(of.Namespace, *name)
			}
		}
	}
}

// leave notes that a consumer of a claim has left; "" is no claim.
func (l *leftovers) leave(namespace, name string) {
	if name == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.departed) >= mostDeparted {
		l.departed, l.tooMany = nil, true
	}
	if l.tooMany {
		return
	}
	if l.departed == nil {
		l.departed = make(map[types.NamespacedName]bool)
	}
	l.departed[types.NamespacedName{Namespace: namespace, Name: name}] = true
}

// gone returns the claims whose consumers have left since the last call, or all if these are too many.
func (l *leftovers) gone() (claims map[types.NamespacedName]bool, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claims, all = l.departed, l.tooMany
	l.departed, l.tooMany = nil, false
	return claims, all
}

// note takes in whether a claim is left over.
func (l *leftovers) note(claim *resourcev1.ResourceClaim, lives Lives, now time.Time) {
	if !isLeft(claim, lives) {
		l.forget(claim.UID, now)
		return
	}
	known, ok := l.claims[claim.UID]
	if !ok {
		known.since, l.moved = now, now
	}
	known.claim = claim
	l.claims[claim.UID] = known
}

// forget drops a claim that is left over no more.
func (l *leftovers) forget(uid types.UID, now time.Time) {
	if _, known := l.claims[uid]; known {
		delete(l.claims, uid)
		l.moved = now
	}
}

// isLeft reports whether the claim has devices and consumers, and all consumers are gone.
func isLeft(claim *resourcev1.ResourceClaim, lives Lives) bool {
	return lives != nil && claim != nil && claim.Status.Allocation != nil && len(claim.Status.ReservedFor) > 0 &&
		!slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return lives(claim.Namespace, r)
		})
}

// review looks at the claims of consumers that have departed, and again at those that seemed left over: a pod may be
// heard of later than its claim.
func (s *Stock) review(lives Lives, now time.Time) {
	departed, all := s.left.gone()
	if all {
		for _, claim := range s.claims {
			if claim != nil {
				s.left.note(claim, lives, now)
			}
		}
	}
	for name := range departed {
		if claim := (objects{s.manager}).Claim(name.Namespace, name.Name); claim != nil {
			s.left.note(claim, lives, now)
		}
	}
	for _, of := range s.left.claims { // those that are looked at may be dropped
		s.left.note(of.claim, lives, now)
	}
}

// awaited returns the claims that are about to be given back, sorted.
func (l *leftovers) awaited(now time.Time) []types.UID {
	var out []types.UID
	if now.Sub(l.moved) > drain {
		return nil
	}
	for uid, of := range l.claims {
		if now.Sub(of.since) <= longest {
			out = append(out, uid)
		}
	}
	slices.Sort(out)
	return out
}

// leave adds to the question the devices that are about to be given back, as a unit that leaves by itself.
func (s *Stock) leave(ctx context.Context, q Question, asked Asked) Asked {
	s.review(q.Lives, q.Now)
	uids := s.left.awaited(q.Now)
	if len(asked.demands) == 0 || len(uids) == 0 {
		return asked
	}
	var nodes []int
	for _, uid := range uids {
		for _, name := range s.inventory.Publishers(s.left.claims[uid].claim.Status.Allocation) {
			if at, ok := asked.Ledger.Tree.Index(name); ok {
				nodes = append(nodes, at)
			}
		}
	}
	slices.Sort(nodes)
	if holds := s.freed(ctx, asked, slices.Compact(nodes), uids); len(holds) > 0 {
		asked.left = len(uids)
		asked.draining = append(asked.draining, snapshot.Leftover(uids, q.Now.Add(drain), holds))
	}
	return asked
}

// freed returns the capacity beyond the free one that each of the nodes could give to the question if these claims were
// given back.
func (s *Stock) freed(ctx context.Context, asked Asked, nodes []int, claims []types.UID) []topology.Held {
	var out []topology.Held
	without := s.fleetWithout(claims)
	for _, node := range nodes {
		for k, demand := range asked.demands {
			fit, err := s.fitter.Fit(ctx, without, asked.Ledger.Tree.Node(node), demand)
			if more := int64(fit.Pods) - at(asked.Ledger.Free[node], asked.first+k); err == nil && more > 0 {
				freed := make(topology.Capacity, asked.first+k+1)
				freed[asked.first+k] = more
				out = append(out, topology.Held{Node: node, Demand: freed})
			}
		}
	}
	return out
}

// leftNote is the part of a gang's message about claims that are left over.
func (a Asked) leftNote() string {
	switch a.left {
	case 0:
		return ""
	case 1:
		return "; 1 claim whose pods are gone still has devices"
	default:
		return fmt.Sprintf("; %d claims whose pods are gone still have devices", a.left)
	}
}
