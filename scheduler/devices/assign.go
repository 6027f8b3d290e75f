package devices

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/dra"
)

// Assign gives a pod that is on its node the devices that it claims and does not have, and reserves its claims for it;
// group is its PodGroup, nil if it has none. Callers that play a scheduler use it: the manager learns of the devices at
// once. Assign returns the resulting pod. Devices that the allocator refuses on that node are not given: plans count on
// no more devices than there are, except for different claims that compete for the same.
func (s *Stock) Assign(
	ctx context.Context, group *schedulingv1beta1.PodGroup, pod *corev1.Pod,
) (*corev1.Pod, error) {
	if !s.Claims([]*corev1.Pod{pod}) {
		return pod, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.fitter.ReadPod(objects{s.manager}, pod, group)
	if read.Demand.Fault != "" {
		return pod, nil // such a pod is never planned
	}
	demands := []*dra.Demand{read.Demand}
	if len(read.Shared) > 0 {
		demands = slices.Insert(demands, 0, s.fitter.Demand(objects{s.manager}.Class, read.Shared...))
	}
	confirmed, err := s.fitter.Confirm(ctx, s.fleet(), pod.Spec.NodeName, demands...)
	if err != nil {
		return nil, fmt.Errorf("assigning devices to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	names := s.claimNames(group, pod)
	for _, given := range slices.Concat(confirmed.Pods...) {
		claim := given.Claim.DeepCopy()
		claim.Status.Allocation = given.Allocation
		if !slices.Contains(names, claim.Name) { // it was made for extended resources
			claim.UID = types.UID(claim.Namespace + "/" + claim.Name)
			claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
			names = append(names, claim.Name)
			there := *pod
			there.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: claim.Name,
			}
			pod = &there
		}
		if err := s.manager.ResourceClaims().AssumeClaimAfterAPICall(claim); err != nil {
			return nil, fmt.Errorf("noting claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	return pod, s.reserve(pod, names)
}

// reserve reserves claims for a pod.
func (s *Stock) reserve(pod *corev1.Pod, names []string) error {
	for _, name := range names {
		claim := objects{s.manager}.Claim(pod.Namespace, name)
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
			Resource: "pods", Name: pod.Name, UID: pod.UID,
		})
		if err := s.manager.ResourceClaims().AssumeClaimAfterAPICall(claim); err != nil {
			return fmt.Errorf("reserving claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	return nil
}

// claimNames are the names of the claims that the entries of a pod stand for.
func (*Stock) claimNames(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name := claimNameOf(pod, group, &pod.Spec.ResourceClaims[i]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Wanted returns the number of accelerators that pods claim, allocated or not; group is their PodGroup. As in the loss
// of a unit, these are devices of classes that stand for an extended resource, or all if there are no such classes.
// Channels are none, and requests for all devices of a node have no known number.
func (s *Stock) Wanted(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) int64 {
	seen := map[types.NamespacedName]bool{}
	var named, all int64
	for _, pod := range pods {
		for _, name := range s.claimNames(group, pod) {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
			claim := objects{s.manager}.Claim(key.Namespace, key.Name)
			if seen[key] || claim == nil {
				continue
			}
			seen[key] = true
			for _, request := range claim.Spec.Devices.Requests {
				class, count := wantedBy(request)
				if class == channelClass {
					continue
				}
				all += count
				if of := (objects{s.manager}).Class(class); of != nil && of.Spec.ExtendedResourceName != nil {
					named += count
				}
			}
		}
	}
	if named > 0 {
		return named
	}
	return all
}

// wantedBy returns the class and the number of devices that a request wants: of alternatives those of the first.
func wantedBy(request resourcev1.DeviceRequest) (class string, count int64) {
	switch {
	case request.Exactly != nil && request.Exactly.AdminAccess != nil && *request.Exactly.AdminAccess:
		return "", 0
	case request.Exactly != nil:
		return request.Exactly.DeviceClassName, request.Exactly.Count
	case len(request.FirstAvailable) > 0:
		return request.FirstAvailable[0].DeviceClassName, request.FirstAvailable[0].Count
	}
	return "", 0
}
