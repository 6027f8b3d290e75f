package devices

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// latecomers are members of groups whose shared claims are being allocated for earlier members. In-tree refuses them
// until that is written, and a refused PodGroup returns by a timer only; here they stay out of the queue for as long,
// one of each claim is remembered, and when the allocation is written or given up it brings its group back.
type latecomers struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

// wait remembers a pod that waits for a claim.
func (l *latecomers) wait(claim types.UID, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods == nil {
		l.pods = make(map[types.UID]*corev1.Pod)
	}
	l.pods[claim] = pod
}

// take returns the pod that waits for a claim, and forgets it; nil for none.
func (l *latecomers) take(claim types.UID) *corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.pods[claim]
	delete(l.pods, claim)
	return pod
}

// PreEnqueue rejects a member whose claims do not exist, as in-tree does, or are being allocated.
func (p *LockstepDynamicResources) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	if status := p.DynamicResources.PreEnqueue(ctx, pod); !status.IsSuccess() {
		return status
	}
	if pod.Spec.SchedulingGroup == nil {
		return nil // claim events bring back pods that are in no group
	}
	claim := p.manager.pending(pod)
	if claim == nil {
		return nil
	}
	p.latecomers.wait(claim.UID, pod)
	if p.manager.pending(pod) == nil { // it was written in between, and no pod was woken
		p.latecomers.take(claim.UID)
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "claim "+claim.Name+" is being allocated")
}

// settled brings the group back that waited for a claim.
func (p *LockstepDynamicResources) settled(claim types.UID) {
	if pod := p.latecomers.take(claim); pod != nil {
		p.beside(func() { // the caller may hold the queue's lock
			p.handle.Activate(klog.Background(), map[string]*corev1.Pod{pod.Name: pod})
		})
	}
}

// claimsOf are the claims of a pod, nil for those that do not exist or cannot be read.
func (m *manager) claimsOf(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	claims := make([]*resourcev1.ResourceClaim, len(pod.Spec.ResourceClaims))
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		if claim, err := m.SharedDRAManager.ResourceClaims().Get(pod.Namespace, *name); err == nil {
			claims[i] = claim
		}
	}
	return claims
}

// isPending reports whether devices have been chosen for a claim, and that is not written yet.
func (m *manager) isPending(claim *resourcev1.ResourceClaim) bool {
	return claim != nil && claim.Status.Allocation == nil &&
		m.SharedDRAManager.ResourceClaims().GetPendingAllocation(claim.UID) != nil
}

// pending is a claim of the pod for which devices have been chosen, and that is not written yet; nil for none.
func (m *manager) pending(pod *corev1.Pod) *resourcev1.ResourceClaim {
	claims := m.claimsOf(pod)
	if i := slices.IndexFunc(claims, m.isPending); i >= 0 {
		return claims[i]
	}
	return nil
}
