package devices

import (
	"context"
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
// would lose its devices.

// Returns configures how a stock returns devices to the cluster.
type Returns struct {
	Client kubernetes.Interface
	Clock  clock.WithDelayedExecution
	// Beside runs a function with a context that lasts until the scheduler ends: the context of a cycle ends before.
	Beside func(do func(context.Context))
	// Changed is called when a claim is found to have changed meanwhile: the caches may not say so.
	Changed func()
}

// GiveBack deallocates the claims of waiting members that no other pod has reserved. A reservation for the PodGroup counts as one of theirs if no
// member has a node. GiveBack does not wait for the writes. It reports whether any claim of the members is being given back.
func (s *Stock) GiveBack(
	ctx context.Context, by Returns, group *schedulingv1beta1.PodGroup, waiting, running []*corev1.Pod,
) bool {
	unit := snapshot.Unit{Pods: waiting}
	if len(running) == 0 {
		unit.Group = group
	}
	for _, claim := range s.mark(unit) {
		klog.FromContext(ctx).V(2).Info("Giving devices back", "claim", klog.KObj(claim), "podGroup", klog.KObj(group))
		by.Beside(func(ctx context.Context) { s.insist(ctx, by, claim) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(waiting, s.gives)
}

// mark notes which claims of a unit without nodes are being given back from now on, and returns them.
func (s *Stock) mark(u snapshot.Unit) []*resourcev1.ResourceClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*resourcev1.ResourceClaim
	for _, claim := range s.claimsOf(u) {
		if s.manager.ResourceClaims().GetPendingAllocation(claim.UID) != nil || s.returns(claim) {
			continue
		}
		s.returned[claim.UID] = claim.ResourceVersion
		out = append(out, claim)
	}
	return out
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

// insist gives a claim back, unless it has changed.
func (s *Stock) insist(ctx context.Context, by Returns, claim *resourcev1.ResourceClaim) {
	for pause := firstReturn; ctx.Err() == nil; pause = min(2*pause, longestReturn) {
		err := giveBack(ctx, by.Client, claim)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			by.Changed()
			return
		}
		if err == nil { // the caches will show it
			return
		}
		klog.FromContext(ctx).Error(err, "Giving devices back", "claim", klog.KObj(claim))
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
	return err //nolint:wrapcheck // the caller logs it, and asks what kind it is
}
