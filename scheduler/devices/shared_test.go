package devices_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// fabric publishes one device for each clique, which all nodes of it reach.
func fabric(cliques int) []runtime.Object {
	kind := "domain"
	out := []runtime.Object{&resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: kind, ResourceVersion: "1"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: `device.driver == "fabric.example.com"`,
		}}}},
	}}
	for c := range cliques {
		name := fmt.Sprint("fabric-", c)
		out = append(out, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", UID: types.UID(name)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "fabric.example.com",
				Pool:   resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{
							Key:      topology.LabelClique,
							Operator: corev1.NodeSelectorOpIn,
							Values:   []string{fmt.Sprint("fabric.", c)},
						},
					},
				}}},
				Devices: []resourcev1.Device{{Name: "domain"}},
			},
		})
	}
	return out
}

// shares lets the members of a group share one device of a domain, by a claim of their PodGroup.
func shares(group *schedulingv1beta1.PodGroup, members []*corev1.Pod) *resourcev1.ResourceClaim {
	name := group.Name + "-domain"
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: schedulertest.Namespace, ResourceVersion: "1", UID: types.UID(name),
			OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "scheduling.k8s.io/v1beta1",
					Kind:       "PodGroup",
					Name:       group.Name,
					UID:        group.UID,
					Controller: new(true),
				},
			},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "domain", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "domain", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			},
		}}}},
	}
	template := "domain"
	group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{
		{Name: "domain", ResourceClaimTemplateName: &template},
	}
	group.Status.ResourceClaimStatuses = []schedulingv1beta1.PodGroupResourceClaimStatus{
		{Name: "domain", ResourceClaimName: &name},
	}
	for _, pod := range members {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "domain", ResourceClaimTemplateName: &template}}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "domain", ResourceClaimName: &name}}
	}
	return claim
}

// Each clique has one domain, which the members of a gang share by a claim of their PodGroup. The first clique has no
// room for all, and the allocator would try it first: the gang starts where all members reach the domain that they get.
func TestSharedClaim_MembersReachTheDevice(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.Gang("shares", 3, "")
	group.Annotations = nil
	busy, holds := schedulertest.RunningGang("busy", "", schedulertest.NodeName(0, 0), schedulertest.NodeName(0, 1))
	claim := shares(group, members)
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), fabric(2), busy, claim, holds)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 3)) {
		t.Errorf("the gang is on %v", got)
	}
}

// Two members name one claim for devices of a node. The first node has room for one of them, so both start on the
// second.
func TestSharedClaim_NodeDevicesGatherTheMembers(t *testing.T) {
	t.Parallel()
	group, members, claims := schedulertest.PairGang("shares", 2, 1, "gpu")
	claim := nameOne(members, claims)
	nodes := schedulertest.Cliques(1, 2)
	first := schedulertest.FindNode(nodes, schedulertest.NodeName(0, 0))
	first.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	objects := schedulertest.DeviceClasses()
	for _, node := range nodes {
		objects = append(objects, node, devicestest.Slice(node, 1, 0))
	}
	c := schedulertest.NewCluster(t, objects, claim)
	c.Create(t, group, members)
	want := []string{schedulertest.NodeName(0, 1), schedulertest.NodeName(0, 1)}
	if got := c.WaitBound(t, members); !slices.Equal(got, want) {
		t.Errorf("the gang is on %v", got)
	}
}

// One member of two names a claim for devices of a node, the other claims nothing. Neither node has room for both.
func TestSharedClaim_OfOneMemberBindsNoOther(t *testing.T) {
	t.Parallel()
	group, members, claims := schedulertest.PairGang("one", 2, 1, "gpu")
	claim := nameOne(members[:1], claims)
	members[1].Spec.ResourceClaims, members[1].Status.ResourceClaimStatuses = nil, nil
	members[1].Spec.Containers[0].Resources.Claims = nil
	objects := schedulertest.DeviceClasses()
	for _, node := range schedulertest.Cliques(1, 2) {
		node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
		objects = append(objects, node, devicestest.Slice(node, 1, 0))
	}
	c := schedulertest.NewCluster(t, objects, claim)
	c.Create(t, group, members)
	c.WaitBound(t, members)
}

// nameOne lets members name the first of their claims, which is returned without an owner.
func nameOne(members []*corev1.Pod, claims []runtime.Object) *resourcev1.ResourceClaim {
	claim := claims[0].(*resourcev1.ResourceClaim)
	claim.OwnerReferences = nil
	for _, pod := range members {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim.Name}}
		pod.Status.ResourceClaimStatuses = nil
	}
	return claim
}

// Each node can serve a claim that two members name, with devices of its own. The question does not grow with the
// square of the nodes: all of them are one choice, or choices whose bars are made when they are tried.
func TestSharedClaim_ChoicesAreLinear(t *testing.T) {
	t.Parallel()
	const size = 50
	for name, of := range map[string]struct {
		divide  func(*schedulingv1beta1.PodGroup)
		choices int
	}{
		"together": {func(*schedulingv1beta1.PodGroup) {}, 1},
		"spread": {func(group *schedulingv1beta1.PodGroup) {
			group.Annotations[topology.AnnotationSpreadMax] = "2"
			group.Annotations[topology.AnnotationSpreadTopology] = "clique"
		}, size},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, members, claims := schedulertest.PairGang("shares", 2, 1, "gpu")
			of.divide(group)
			claim := nameOne(members, claims)
			var published []*resourcev1.ResourceSlice
			var nodes []fwk.NodeInfo
			for _, node := range schedulertest.Cliques(1, size) {
				info := framework.NewNodeInfo()
				info.SetNode(node)
				nodes, published = append(nodes, info), append(published, devicestest.Slice(node, 1, 0))
			}
			reader := &waiting.Reader{
				Indices: snapshot.NewIndices(nil, nodehealth.Rules{}),
				Stock: new(devices.Shared).Stock(devices.NewFixed(published,
					[]*resourcev1.DeviceClass{devicestest.Class("gpu"), devicestest.Class("nic")},
					[]*resourcev1.ResourceClaim{claim})),
			}
			x, err := reader.Read(t.Context(), waiting.Asked{Group: group, Waiting: members, Nodes: nodes})
			if err != nil {
				t.Fatal(err)
			}
			if len(x.Choices) != of.choices {
				t.Errorf("%d choices, want %d", len(x.Choices), of.choices)
			}
			for i, choice := range x.Choices[1:] {
				if barred := choice.Gang.Shapes[0].Barred; len(barred) > 0 {
					t.Fatalf("choice %d has %d bars before it is tried", i+1, len(barred))
				}
			}
		})
	}
}

// A member of a group that is no gang arrives while the claim that it shares is being written for the first. It is not
// refused meanwhile, and starts after the write.
func TestSharedClaim_LateMemberWaitsForTheWrite(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.Gang("shares", 2, "")
	group.Annotations = nil
	group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{},
	}
	claim := shares(group, members)
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, 4), fabric(1), claim)
	var refused atomic.Int64
	c.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetName() == members[1].Name {
			refused.Add(1)
		}
		return false, nil, nil
	})
	g := &gate{reached: make(chan struct{}, len(members)), opened: make(chan struct{})}
	config, registry := schedulertest.Config(t), schedulertest.Registry(clock.RealClock{})
	schedulertest.PrependPlugin(config, registry, g)
	c.StartScheduler(t.Context(), t, c, config, registry)
	c.Create(t, group, members[:1])
	<-g.reached
	c.Create(t, members[1])
	time.Sleep(200 * time.Millisecond) // it would be tried at once
	close(g.opened)
	c.WaitBound(t, members)
	if n := refused.Load(); n > 0 {
		t.Errorf("the late member was refused %d times", n)
	}
}

// gate is a PreBind plugin that holds all pods up until it is opened.
type gate struct{ reached, opened chan struct{} }

func (*gate) Name() string { return "Gate" }

func (*gate) PreBindPreFlight(
	context.Context, fwk.CycleState, *corev1.Pod, string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (g *gate) PreBind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	g.reached <- struct{}{}
	<-g.opened
	return nil
}
