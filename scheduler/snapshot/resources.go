package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/topology"
)

// firstResources begin every capacity vector; extended resources follow in alphabetical order.
func firstResources() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	}
}

// requests is what the pod takes of a node, itself included.
func requests(pod *corev1.Pod) corev1.ResourceList {
	list := resource.PodRequests(pod, resource.PodResourcesOptions{})
	list[corev1.ResourcePods] = *apiresource.NewQuantity(1, apiresource.DecimalSI)
	return list
}

// Resources lists what the pods ask for, each resource once, in alphabetical order.
func Resources(pods []*corev1.Pod) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, pod := range pods {
		for name, quantity := range requests(pod) {
			if !quantity.IsZero() && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// demand is the vector of a request list; zero requests ask for nothing, whatever is left.
func demand(list corev1.ResourceList, resources []corev1.ResourceName) topology.Capacity {
	out := make(topology.Capacity, len(resources))
	for i, name := range resources {
		quantity, ok := list[name]
		if !ok {
			continue
		}
		if name == corev1.ResourceCPU {
			out[i] = quantity.MilliValue()
		} else {
			out[i] = quantity.Value()
		}
	}
	return out
}

// free is what a node has left, never below zero: a node may be overcommitted.
func free(info fwk.NodeInfo, resources []corev1.ResourceName) topology.Capacity {
	has, used := info.GetAllocatable(), info.GetRequested()
	out := make(topology.Capacity, len(resources))
	for i, name := range resources {
		switch name {
		case corev1.ResourcePods:
			out[i] = int64(has.GetAllowedPodNumber() - len(info.GetPods()))
		case corev1.ResourceCPU:
			out[i] = has.GetMilliCPU() - used.GetMilliCPU()
		case corev1.ResourceMemory:
			out[i] = has.GetMemory() - used.GetMemory()
		case corev1.ResourceEphemeralStorage:
			out[i] = has.GetEphemeralStorage() - used.GetEphemeralStorage()
		default:
			out[i] = has.GetScalarResources()[name] - used.GetScalarResources()[name]
		}
		out[i] = max(out[i], 0)
	}
	return out
}
