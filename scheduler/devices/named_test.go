package devices_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// cardNodes are the classes, and a clique of nodes that publish so many cards each.
func cardNodes(nodes, each int) []runtime.Object {
	objects := extendedClasses()
	for _, node := range schedulertest.Cliques(1, nodes) {
		objects = append(objects, node, devicestest.Slice(node, each, 0))
	}
	return objects
}

// Nodes that publish cards offer none of the resource; nodes with an old device plugin offer it and publish nothing.
// The first clique has too few of both, the second has enough.
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

// The scheduler died after it had created the claim for the cards of a member, before that was allocated or after.
// In-tree finds the claim and refuses every node: it is deleted before the gang starts.
func TestExtendedResource_TornStartDeletesTheClaim(t *testing.T) {
	t.Parallel()
	for name, allocation := range map[string]*resourcev1.AllocationResult{
		"created":   nil,
		"allocated": devicestest.Allocation(schedulertest.NodeName(0, 0), 2),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := extendedClasses()
			for _, node := range schedulertest.Cliques(1, 2) {
				objects = append(objects, node, devicestest.Slice(node, 4, 0))
			}
			group, members := carded("train", 2)
			torn := schedulertest.PodClaim(members[0].DeepCopy(), "torn", resourcev1.ResourceClaimSpec{
				Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
					Name: "container-0-request-0", Exactly: &resourcev1.ExactDeviceRequest{
						DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 4,
					},
				}}},
			})
			torn.Name, torn.UID, torn.Finalizers = "torn", "torn", []string{resourcev1.Finalizer}
			torn.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
			if allocation != nil {
				schedulertest.Allocate(members[0], torn, allocation)
			}
			c := schedulertest.NewUnstartedCluster(t, objects, torn)
			c.NameClaims()
			c.Start(t)
			c.Create(t, group, members)
			c.WaitBound(t, members)
			claims := c.ResourceV1().ResourceClaims(schedulertest.Namespace)
			_, err := claims.Get(t.Context(), torn.Name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("the claim of the torn start is still there: %v", err)
			}
		})
	}
}

// A member's own claim is annotated as if the scheduler had created it. In-tree refuses the member, and the claim
// stays: its controller would create it again, without end.
func TestExtendedResource_AnnotatedClaimIsNotDeleted(t *testing.T) {
	t.Parallel()
	objects := cardNodes(1, 8)
	group, members := carded("train", 1)
	claim := schedulertest.PodClaim(members[0], "own", devicestest.Pairs(1, "gpu"))
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	c := schedulertest.NewCluster(t, objects, claim)
	c.Create(t, group, members)
	c.WaitRejected(t, group.Name)
	claims := c.ResourceV1().ResourceClaims(schedulertest.Namespace)
	if _, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the claim is gone: %v", err)
	}
}

// All cards are taken by a gang that asked for them by name. A more important one that does so too has them instead.
func TestExtendedResource_PreemptionFreesNamedDevices(t *testing.T) {
	t.Parallel()
	objects := cardNodes(4, 4)
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

// In-tree takes a claim of another namespace that names a waiting pod as its owner for the pod's, and refuses it every
// node. It is deleted.
func TestExtendedResource_ForgedClaimIsDeleted(t *testing.T) {
	t.Parallel()
	objects := cardNodes(1, 8)
	group, members := carded("train", 1)
	forged := schedulertest.PodClaim(members[0], "forged", devicestest.Pairs(1, "gpu"))
	forged.Namespace, forged.Name = "attacker", "forged"
	forged.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	forged.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: members[0].Name, UID: members[0].UID, Controller: new(true)},
	}
	members[0].Spec.ResourceClaims, members[0].Spec.Containers[0].Resources.Claims = nil, nil
	c := schedulertest.NewCluster(t, objects, forged)
	c.Create(t, group, members)
	c.WaitBound(t, members)
}
