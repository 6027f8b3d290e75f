package devices_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// cards is a resource that pods ask for by its name, and for which a class of devices stands.
const cards = corev1.ResourceName("example.com/card")

// extendedClasses are the device classes; that of GPUs serves cards.
func extendedClasses() []runtime.Object {
	objects := schedulertest.DeviceClasses()
	for _, o := range objects {
		if class, ok := o.(*resourcev1.DeviceClass); ok && class.Name == "gpu" {
			class.Spec.ExtendedResourceName = new(string(cards))
		}
	}
	return objects
}

// carded is a gang whose members each request four cards.
func carded(name string, size int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := schedulertest.Gang(name, size, "clique")
	for _, pod := range members {
		requests := pod.Spec.Containers[0].Resources.Requests
		delete(requests, schedulertest.GPU)
		requests[cards] = resource.MustParse("4")
		pod.Spec.Containers[0].Resources.Limits = requests
	}
	return group, members
}

// Nodes that publish cards offer none of the resource; nodes with an old device plugin offer it and publish nothing. The first clique
// has too few of both, the second has enough.
func TestExtendedResource_FitsSlicesOrDevicePlugin(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 4)
	objects := extendedClasses()
	for _, node := range nodes {
		count := 4
		switch node.Name {
		case "c0-n1":
			count = 3
		case "c0-n2":
			count = 0
		case "c1-n2":
			count = 0
			node.Status.Allocatable[cards] = resource.MustParse("4")
			node.Status.Capacity[cards] = resource.MustParse("4")
		}
		objects = append(objects, node, devicestest.Slice(node, count, 0))
	}
	group, members := carded("train", 4)
	c := schedulertest.NewUnstartedCluster(t, objects)
	c.NameClaims()
	c.CollectClaims(t)
	c.Start(t)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}

// All cards are taken by a gang that asked for them by name. A more important one that does so too has them instead.
func TestExtendedResource_PreemptionFreesNamedDevices(t *testing.T) {
	t.Parallel()
	objects := extendedClasses()
	for _, node := range schedulertest.Cliques(1, 4) {
		objects = append(objects, node, devicestest.Slice(node, 4, 0))
	}
	low, first := carded("low", 4)
	high, second := carded("high", 4)
	schedulertest.SetPriority(low, first, 0)
	schedulertest.SetPriority(high, second, 1000)
	c := schedulertest.NewUnstartedCluster(t, objects)
	c.NameClaims()
	c.CollectClaims(t)
	c.Start(t)
	c.Create(t, low, first)
	c.WaitBound(t, first)
	c.Create(t, high, second)
	if got := c.WaitBound(t, second); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the important gang is on %v", got)
	}
}
