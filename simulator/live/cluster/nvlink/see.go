package nvlink

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/topology"
)

// Cluster holds the objects that the driver reads, in no order.
type Cluster struct {
	Domains   []*unstructured.Unstructured
	Nodes     []*corev1.Node
	Pods      []*corev1.Pod
	Claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	Templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	// Published are the names of all ResourceSlices.
	Published map[string]bool
}

// See makes a State of it.
func (c Cluster) See() State {
	var state State
	for _, object := range c.Domains {
		name, _, _ := unstructured.NestedString(object.Object, "spec", "channel", "resourceClaimTemplate", "name")
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		made := c.Templates[types.NamespacedName{Namespace: key.Namespace, Name: name}]
		state.Domains = append(state.Domains, Domain{
			Key:      key,
			UID:      object.GetUID(),
			Template: name,
			Deleting: object.GetDeletionTimestamp() != nil,
			Held:     slices.Contains(object.GetFinalizers(), Finalizer),
			Made: made != nil && made.Labels[DomainLabel] == string(object.GetUID()) &&
				made.DeletionTimestamp == nil,
		})
	}
	for _, node := range c.Nodes {
		state.Nodes = append(state.Nodes, Node{
			Name: node.Name, Clique: node.Labels[topology.LabelClique], Domain: types.UID(node.Labels[DomainLabel]),
			Published: c.Published[SliceName(node.Name)],
		})
	}
	for _, pod := range c.Pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Spec.NodeName != "" && len(pod.Spec.ResourceClaims) > 0 && !ended {
			state.Pods = append(state.Pods, c.pod(pod))
		}
	}
	slices.SortFunc(state.Domains, func(a, b Domain) int { return byName(a.Key, b.Key) })
	slices.SortFunc(state.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(state.Pods, func(a, b Pod) int { return byName(a.Key, b.Key) })
	return state
}

func byName(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (c Cluster) pod(pod *corev1.Pod) Pod {
	seen := Pod{
		Key:  types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		Node: pod.Spec.NodeName, Allocated: true, Prepared: pod.Annotations[PreparedAnnotation] == Prepared,
	}
	for _, name := range claimsOf(pod) {
		claim := c.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
		if claim == nil || claim.Status.Allocation == nil {
			seen.Allocated = false
			continue
		}
		if uid := domainOf(claim.Status.Allocation); uid != "" && !slices.Contains(seen.Domains, uid) {
			seen.Domains = append(seen.Domains, uid)
		}
	}
	return seen
}

// claimsOf are the names of a pod's claims; an empty one is not made yet.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimName != nil {
			names = append(names, *entry.ResourceClaimName)
			continue
		}
		i := slices.IndexFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
			return s.Name == entry.Name
		})
		switch {
		case i < 0:
			names = append(names, "")
		case pod.Status.ResourceClaimStatuses[i].ResourceClaimName != nil: // else the claim was not needed
			names = append(names, *pod.Status.ResourceClaimStatuses[i].ResourceClaimName)
		}
	}
	return names
}

// domainOf is the UID of the domain to which an allocated channel belongs; empty if there is none among the devices.
func domainOf(allocation *resourcev1.AllocationResult) types.UID {
	channel := slices.ContainsFunc(allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return r.Driver == driverName && strings.HasPrefix(r.Device, "channel-")
	})
	if !channel {
		return ""
	}
	for _, config := range allocation.Devices.Config {
		var parameters channelConfig
		if config.Opaque != nil && config.Opaque.Driver == driverName &&
			json.Unmarshal(config.Opaque.Parameters.Raw, &parameters) == nil && parameters.DomainID != "" {
			return types.UID(parameters.DomainID)
		}
	}
	return ""
}
