package devices

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// A torn start leaves devices with members that have no node: the scheduler died between the allocation and the
// binding, or the binding failed. The devices tie these members to a node, which may have been deleted, and are
// unavailable to others. In-tree takes them from a single pod that fits nowhere, in its cycle. A gang that waits gives
// all of them back, beside the cycles, and is not placed until the caches show that: a gang that is bound meanwhile
// would lose its devices. A claim that was created for a member's extended resources is deleted: while it exists,
// in-tree refuses the member every node.

// Returns configures how a stock returns devices to the cluster.
type Returns struct {
	Client kubernetes.Interface
	Clock  clock.WithDelayedExecution
	// Beside runs a function with a context that lasts until the scheduler ends: the context of a cycle ends before.
	Beside func(do func(context.Context))
	// Changed is called when a claim is found to have changed meanwhile: the caches may not say so.
	Changed func()
}

// GiveBack deallocates the claims of waiting members that no other pod has reserved, and deletes those that were
// created for their extended resources. A reservation for the PodGroup counts as one of theirs if no member has a node.
// GiveBack does not wait for the writes. It reports whether any claim of the members is being given back.
func (s *Stock) GiveBack(
	ctx context.Context, by Returns, group *schedulingv1beta1.PodGroup, waiting, running []*corev1.Pod,
) bool {
	unit := snapshot.Unit{Pods: waiting}
	if len(running) == 0 {
		unit.Group = group
	}
	deallocate, remove := s.mark(unit)
	for _, of := range []struct {
		claims []*resourcev1.ResourceClaim
		write  writeOnce
	}{{deallocate, giveBack}, {remove, deleteOnce}} {
		for _, claim := range of.claims {
			klog.FromContext(ctx).V(2).
				Info("Giving devices back", "claim", klog.KObj(claim), "podGroup", klog.KObj(group))
			by.Beside(func(ctx context.Context) { s.insist(ctx, by, claim, of.write) })
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.giving(waiting)
}

// giving reports whether any claim of members without nodes is being given back, or has to be.
func (s *Stock) giving(waiting []*corev1.Pod) bool {
	return slices.ContainsFunc(waiting, s.gives) || len(s.torn(waiting)) > 0
}

// torn returns the claims that earlier starts have created for the extended resources of members without nodes. A claim
// that its pod names is the user's, whatever its annotations: its controller would create it again.
func (s *Stock) torn(waiting []*corev1.Pod) []*resourcev1.ResourceClaim {
	owners := map[types.UID]*corev1.Pod{}
	for _, pod := range waiting {
		if backed(s.manager, pod) {
			owners[pod.UID] = pod
		}
	}
	if len(owners) == 0 {
		return nil
	}
	claims, err := s.manager.ResourceClaims().List()
	if err != nil {
		return nil // the question could not be read either
	}
	var out []*resourcev1.ResourceClaim
	for _, claim := range claims {
		owner := metav1.GetControllerOfNoCopy(claim)
		if owner == nil || !isExtended(claim) || owners[owner.UID] == nil {
			continue
		}
		pod := owners[owner.UID] // of another namespace if a tenant wrote the reference: in-tree takes it for the pod's
		if pod.Namespace != claim.Namespace || !slices.Contains(s.claimNames(nil, pod), claim.Name) {
			out = append(out, claim)
		}
	}
	return out
}

// isExtended reports whether the scheduler created the claim for extended resources of a pod.
func isExtended(claim *resourcev1.ResourceClaim) bool {
	return claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

// mark notes which claims of a unit without nodes are being given back from now on, and returns them: those to
// deallocate, and those to delete.
func (s *Stock) mark(u snapshot.Unit) (deallocate, remove []*resourcev1.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := func(claim *resourcev1.ResourceClaim) bool {
		if s.manager.ResourceClaims().GetPendingAllocation(claim.UID) != nil || s.returns(claim) {
			return true
		}
		s.returned[claim.UID] = claim.ResourceVersion
		return false
	}
	remove = slices.DeleteFunc(s.torn(u.Pods), known) // first: the unit's claims may be among them
	return slices.DeleteFunc(s.claimsOf(u), known), remove
}

// returns reports whether a claim is being given back, as far as the caches show.
func (s *Stock) returns(claim *resourcev1.ResourceClaim) bool {
	version, known := s.returned[claim.UID]
	if known && version != claim.ResourceVersion { // another writer has changed it
		delete(s.returned, claim.UID)
		return false
	}
	return known
}

// gives reports whether a claim of a pod is being given back.
func (s *Stock) gives(pod *corev1.Pod) bool {
	if len(s.returned) == 0 {
		return false
	}
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		if claim := (objects{s.manager}).Claim(pod.Namespace, *name); claim != nil && s.returns(claim) {
			return true
		}
	}
	return false
}

// An attempt that failed is made again after a pause that doubles.
const (
	firstReturn   = 200 * time.Millisecond
	longestReturn = 30 * time.Second
	returnTimeout = 10 * time.Second
)

// writeOnce makes one attempt to give a claim back.
type writeOnce func(context.Context, kubernetes.Interface, *resourcev1.ResourceClaim) error

// insist gives a claim back, unless it has changed.
func (s *Stock) insist(ctx context.Context, by Returns, claim *resourcev1.ResourceClaim, write writeOnce) {
	for pause := firstReturn; ctx.Err() == nil; pause = min(2*pause, longestReturn) {
		err := write(ctx, by.Client, claim)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			by.Changed()
			return
		}
		if err == nil { // the caches will show it
			return
		}
		klog.FromContext(ctx).Error(err, "Failed to give devices back, trying again", "claim", klog.KObj(claim))
		select {
		case <-ctx.Done():
		case <-by.Clock.After(pause):
		}
		if !s.stillReturns(claim.UID) {
			return
		}
	}
}

func (s *Stock) stillReturns(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.returned[uid]
	return known
}

func giveBack(ctx context.Context, client kubernetes.Interface, claim *resourcev1.ResourceClaim) error {
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	free := claim.DeepCopy()
	free.Status.Allocation, free.Status.ReservedFor = nil, nil
	_, err := client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, free, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("deallocating: %w", err)
	}
	return nil
}

// deleteOnce deletes a claim that the scheduler created; the next start creates another one.
func deleteOnce(ctx context.Context, client kubernetes.Interface, claim *resourcev1.ResourceClaim) error {
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	free, claims := claim.DeepCopy(), client.ResourceV1().ResourceClaims(claim.Namespace)
	if at := slices.Index(free.Finalizers, resourcev1.Finalizer); at >= 0 {
		free.Finalizers = slices.Delete(free.Finalizers, at, at+1)
		if _, err := claims.Update(ctx, free, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("removing the finalizer: %w", err)
		}
	}
	if err := claims.Delete(ctx, claim.Name, *metav1.NewPreconditionDeleteOptions(string(claim.UID))); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return nil
}
