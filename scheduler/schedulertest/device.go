package schedulertest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
)

// DeviceClasses returns the device classes gpu and nic.
func DeviceClasses() []runtime.Object {
	return []runtime.Object{devicestest.Class("gpu"), devicestest.Class("nic")}
}

// PairedCliques returns the device classes, and cliques of nodes with as many pairs of a GPU and a NIC on each, one
// below each PCIe root.
func PairedCliques(cliques, size, pairs int) []runtime.Object {
	objects := DeviceClasses()
	for _, node := range Cliques(cliques, size) {
		objects = append(objects, node, devicestest.Slice(node, pairs, 0))
	}
	return objects
}

// PairGang returns a gang in one clique each of whose members claims pairs of a GPU and a NIC below one PCIe root, and
// the claims as their controller creates them. class is the device class of the GPUs.
func PairGang(
	name string, size, pairs int, class string,
) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := Gang(name, size, "clique")
	var claims []runtime.Object
	for _, pod := range members {
		claim := PodClaim(pod, "devices", devicestest.Pairs(pairs, class))
		delete(pod.Spec.Containers[0].Resources.Requests, GPU)
		pod.Spec.Containers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Requests
		claims = append(claims, claim)
	}
	return group, members, claims
}

// PodClaim makes a pod claim devices by a template, and returns the claim that its controller creates.
func PodClaim(pod *corev1.Pod, template string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: claimOf(pod.Name), Namespace: Namespace, ResourceVersion: "1", UID: types.UID(claimOf(pod.Name)),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
			}},
		},
		Spec: spec,
	}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: template, ResourceClaimTemplateName: &template}}
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
		{Name: template, ResourceClaimName: &claim.Name},
	}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: template}}
	return claim
}

// claimOf returns the name of a pod's claim.
func claimOf(pod string) string { return pod + "-devices" }

// AllocatePairs binds the members of a PairGang to nodes, and allocates the nodes' first pairs to their claims.
func AllocatePairs(members []*corev1.Pod, claims []runtime.Object, pairs int, nodes ...string) {
	for i, pod := range members {
		pod.Spec.NodeName = nodes[i]
		Allocate(pod, claims[i], devicestest.Allocation(nodes[i], pairs))
	}
}

// Allocate sets the allocation of a claim, and reserves it for the pod.
func Allocate(pod *corev1.Pod, claim runtime.Object, allocation *resourcev1.AllocationResult) {
	if c, ok := claim.(*resourcev1.ResourceClaim); ok {
		c.Status = resourcev1.ResourceClaimStatus{
			Allocation: allocation,
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{
				{Resource: "pods", Name: pod.Name, UID: pod.UID},
			},
		}
	}
}

// NameClaims names the claims that the scheduler creates for extended resources, as an API server does.
func (c *Cluster) NameClaims() {
	c.PrependReactor("create", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		if claim, ok := create.GetObject().(*resourcev1.ResourceClaim); ok && claim.Name == "" {
			claim.Name = claimOf(claim.OwnerReferences[0].Name)
			claim.UID = types.UID(claim.Name)
		}
		return false, nil, nil
	})
}

// CollectClaims makes the claim of each deleted pod be deleted, as the garbage collector does.
func (c *Cluster) CollectClaims(tb testing.TB) {
	tb.Helper()
	c.CollectClaimsAfter(tb, 0)
}

// CollectClaimsAfter is CollectClaims by a garbage collector that has much to do: the claim outlives its pod by so
// long.
func (c *Cluster) CollectClaimsAfter(tb testing.TB, lag time.Duration) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	c.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if deletion, ok := action.(clienttesting.DeleteAction); ok {
			name := claimOf(deletion.GetName())
			time.AfterFunc(lag, func() {
				_ = c.ResourceV1().ResourceClaims(Namespace).Delete(ctx, name, metav1.DeleteOptions{})
			})
		}
		return false, nil, nil
	})
}
