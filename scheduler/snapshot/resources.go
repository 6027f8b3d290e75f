package snapshot

import (
	"maps"
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

// Requests returns the resources that the pod takes of a node, itself included.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	asks := asks(pod)
	list := make(corev1.ResourceList, len(asks)+1)
	maps.Copy(list, asks)
	list[corev1.ResourcePods] = *apiresource.NewQuantity(1, apiresource.DecimalSI)
	return list
}

// asks is Requests without the pod itself. The list may be the pod's own: one container's requests need no sum, and
// most pods have one.
func asks(pod *corev1.Pod) corev1.ResourceList {
	spec := &pod.Spec
	if len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Resources == nil && spec.Overhead == nil {
		return spec.Containers[0].Resources.Requests
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// Resources lists the resources that the pods request, each once, in alphabetical order.
func Resources(pods []*corev1.Pod) []corev1.ResourceName {
	names := make(map[corev1.ResourceName]bool)
	for _, pod := range pods {
		names[corev1.ResourcePods] = true
		for name, quantity := range asks(pod) {
			if !quantity.IsZero() {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// demandOf returns the resources that the pod takes of a node as a vector.
func demandOf(pod *corev1.Pod, resources []corev1.ResourceName) topology.Capacity {
	out := demand(asks(pod), resources)
	if at := slices.Index(resources, corev1.ResourcePods); at >= 0 {
		out[at] = 1
	}
	return out
}

// demand is the vector of a request list; zero requests ask for nothing, whatever is left.
func demand(list corev1.ResourceList, resources []corev1.ResourceName) topology.Capacity {
	out := make(topology.Capacity, len(resources))
	for i, name := range resources {
		if quantity, ok := list[name]; ok {
			out[i] = AmountOf(name, quantity)
		}
	}
	return out
}

// mostAmount bounds an amount of a resource. It is more than any node has, and the pods of a node can be added up
// without an overflow.
const mostAmount = 1 << 52

// AmountOf returns a quantity in the units of capacities: thousandths of a processor, and whole units of all else, from
// 0 to 2^52. The API server admits 18446744073709551 processors, which are -616 thousandths in 64 bits, and the sums of
// containers may have more than 64 bits.
func AmountOf(name corev1.ResourceName, quantity apiresource.Quantity) int64 {
	scale, most := apiresource.Scale(0), int64(mostAmount)
	if name == corev1.ResourceCPU {
		scale, most = apiresource.Milli, mostAmount/1000
	}
	if quantity.CmpInt64(most) >= 0 {
		return mostAmount
	}
	return max(quantity.ScaledValue(scale), 0)
}

// taken returns the resources that the pods of a node take.
func taken(info fwk.NodeInfo, resources []corev1.ResourceName) topology.Capacity {
	used := info.GetRequested()
	out := make(topology.Capacity, len(resources))
	for i, name := range resources {
		if name == corev1.ResourcePods {
			out[i] = int64(len(info.GetPods()))
		} else {
			out[i] = max(amount(used, name), 0) // kube-scheduler's sum may have wrapped
		}
	}
	return out
}

// total returns the room of a node for pods, never below zero.
func total(info fwk.NodeInfo, resources []corev1.ResourceName) topology.Capacity {
	has := info.GetAllocatable()
	out := make(topology.Capacity, len(resources))
	for i, name := range resources {
		if name == corev1.ResourcePods {
			out[i] = max(int64(has.GetAllowedPodNumber()), 0)
		} else {
			out[i] = max(amount(has, name), 0)
		}
	}
	return out
}

func amount(of fwk.Resource, name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return of.GetMilliCPU()
	case corev1.ResourceMemory:
		return of.GetMemory()
	case corev1.ResourceEphemeralStorage:
		return of.GetEphemeralStorage()
	default:
		return of.GetScalarResources()[name]
	}
}

// less returns the remainder, never below zero.
func less(has, taken topology.Capacity) topology.Capacity {
	out := make(topology.Capacity, len(has))
	for i := range has {
		out[i] = max(has[i]-taken[i], 0)
	}
	return out
}

// Room returns the resources that a member of the shape takes of a node.
func (v View) Room(shape topology.Shape) corev1.ResourceList {
	list := make(corev1.ResourceList)
	for i, name := range v.resources {
		switch asked := shape.Demand[i]; {
		case asked == 0:
		case name == corev1.ResourceCPU:
			list[name] = *apiresource.NewMilliQuantity(asked, apiresource.DecimalSI)
		default:
			list[name] = *apiresource.NewQuantity(asked, apiresource.DecimalSI)
		}
	}
	return list
}

// Takes returns the amounts that the pod takes of a node, in the units of capacities.
func Takes(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	out := make(map[corev1.ResourceName]int64)
	for name, quantity := range Requests(pod) {
		out[name] = AmountOf(name, quantity)
	}
	return out
}

// namesOf are the names of resources as topology speaks of them.
func namesOf(resources []corev1.ResourceName) []string {
	names := make([]string, len(resources))
	for i, resource := range resources {
		names[i] = string(resource)
	}
	return names
}
