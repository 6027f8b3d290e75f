package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	driver  = "gpu.example.com"
	pciRoot = resourcev1.QualifiedName("resource.kubernetes.io/pcieRoot")
)

// publishes is a node's slice of pairs of a GPU and a NIC at one PCIe root each; the last broken pairs have their NICs elsewhere.
func publishes(node *corev1.Node, pairs, broken int) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: "1", UID: types.UID("slice-" + node.Name)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node.Name,
			Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range pairs {
		for _, kind := range []string{"gpu", "nic"} {
			root := fmt.Sprint("pci", i)
			if kind == "nic" && i >= pairs-broken {
				root = fmt.Sprint("far", i)
			}
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprint(kind, "-", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"kind": {StringValue: &kind}, pciRoot: {StringValue: &root},
				},
			})
		}
	}
	return slice
}

// classes are the device classes gpu and nic.
func classes() []runtime.Object {
	var out []runtime.Object
	for _, kind := range []string{"gpu", "nic"} {
		out = append(out, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: kind, ResourceVersion: "1"},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.attributes[%q].kind == %q`, driver, kind),
			}}}},
		})
	}
	return out
}

// claiming is a gang of which each member claims so many pairs, aligned by PCIe root, and its claims as their controller made them.
func claiming(
	name string,
	size, pairs int,
	class string,
) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := gang(name, size, "clique")
	var claims []runtime.Object
	for _, pod := range members {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
			Name:            pod.Name + "-devices",
			Namespace:       namespace,
			ResourceVersion: "1",
			UID:             types.UID(pod.Name + "-devices"),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
			}},
		}}
		for i := range pairs {
			g, n := fmt.Sprint("gpu", i), fmt.Sprint("nic", i)
			for request, of := range map[string]string{g: class, n: "nic"} {
				claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{
					Name: request, Exactly: &resourcev1.ExactDeviceRequest{
						DeviceClassName: of, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
					},
				})
			}
			root := resourcev1.FullyQualifiedName(pciRoot)
			claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints,
				resourcev1.DeviceConstraint{Requests: []string{g, n}, MatchAttribute: &root})
		}
		slices.SortFunc(claim.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int {
			return strings.Compare(a.Name, b.Name)
		})
		template := "devices"
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
			{Name: "devices", ResourceClaimName: &claim.Name},
		}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "devices"}}
		delete(pod.Spec.Containers[0].Resources.Requests, gpu)
		pod.Spec.Containers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Requests
		claims = append(claims, claim)
	}
	return group, members, claims
}

// Three cliques of four. In the first a node has one pair whose NIC is elsewhere, in the second one publishes nothing: a gang that
// needs all pairs of four nodes goes to the third, at once.
func TestAGangGoesWhereItsDevicesAre(t *testing.T) {
	nodes := cliques(3, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		switch node.Name {
		case "c0-n2":
			objects = append(objects, publishes(node, 4, 1))
		case "c1-n1":
		default:
			objects = append(objects, publishes(node, 4, 0))
		}
	}
	group, members, claims := claiming("train", 4, 4, "gpu")
	refusals := counted(t, "lockstep_scheduler_pin_refusals_total", "")
	c := listed(t, slices.Concat(objects, claims)...)
	c.add(t, group, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(2, 4)) {
		t.Errorf("the gang is on %v", got)
	}
	if n := counted(t, "lockstep_scheduler_pin_refusals_total", "") - refusals; n != 0 {
		t.Errorf("%v planned nodes were refused", n)
	}
}

// Claims that cannot be asked for keep their gang waiting with the reason, and nobody else.
func TestClaimsThatCannotBeAskedForAreExplained(t *testing.T) {
	nodes := cliques(1, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 2, 0))
	}
	wrong, lost, itsClaims := claiming("wrong", 2, 1, "gpus")
	other, fine, claims := claiming("fine", 2, 2, "gpu")
	c := listed(t, slices.Concat(objects, itsClaims, claims)...)
	c.add(t, wrong, lost)
	if why := c.waitRejected(t, "wrong"); !strings.Contains(why, "gpus") {
		t.Errorf("it waits for: %s", why)
	}
	c.add(t, other, fine)
	c.waitBound(t, fine)
}

// allocated lets the members run on these nodes with the pairs that they claim, as if they had been there for long.
func allocated(members []*corev1.Pod, claims []runtime.Object, pairs int, nodes ...string) {
	for i, pod := range members {
		pod.Spec.NodeName = nodes[i]
		claim := claims[i].(*resourcev1.ResourceClaim)
		var results []resourcev1.DeviceRequestAllocationResult
		for _, kind := range []string{"gpu", "nic"} {
			for n := range pairs {
				results = append(results, resourcev1.DeviceRequestAllocationResult{
					Request: fmt.Sprint(kind, n), Driver: driver, Pool: nodes[i], Device: fmt.Sprint(kind, "-", n),
				})
			}
		}
		claim.Status = resourcev1.ResourceClaimStatus{
			Allocation: &resourcev1.AllocationResult{
				Devices: resourcev1.DeviceAllocationResult{Results: results},
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{
						{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{nodes[i]}},
					},
				}}},
			},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
		}
	}
}

// Both cliques are full of gangs with devices: that of the second lost less. It goes, its devices with it, and the important gang
// with devices is there.
func TestAGangWithDevicesPreemptsOneWithDevices(t *testing.T) {
	nodes := cliques(2, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 4, 0))
	}
	pods := map[string][]*corev1.Pod{}
	for i, name := range []string{"old", "young"} {
		group, members, claims := claiming(name, 4, 4, "gpu")
		allocated(members, claims, 4, inClique(i, 4)...)
		since(group, members, []time.Duration{time.Hour, time.Minute}[i], 0)
		objects = slices.Concat(objects, as(group), as(members...), claims)
		pods[name] = members
	}
	high, members, claims := claiming("high", 4, 4, "gpu")
	raise(high, members, 1000)
	c := listed(t, slices.Concat(objects, claims)...)
	c.collects(t)
	c.add(t, high, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(1, 4)) {
		t.Errorf("the important gang is on %v", got)
	}
	for _, pod := range pods["old"] {
		if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s went too: %v", pod.Name, err)
		}
	}
}

// collects plays the controller that deletes the claims of pods which are gone.
func (c *cluster) collects(t *testing.T) {
	t.Helper()
	c.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.DeleteAction).GetName() + "-devices"
		go func() {
			_ = c.ResourceV1().ResourceClaims(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		}()
		return false, nil, nil
	})
}

// A gang ran and is over, its claims were deleted with it, and nobody asked for devices meanwhile: they are free again.
func TestDevicesOfAGangThatIsOverAreFree(t *testing.T) {
	nodes := cliques(1, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 4, 0))
	}
	first, members, claims := claiming("first", 4, 4, "gpu")
	second, others, theirs := claiming("second", 4, 4, "gpu")
	c := listed(t, slices.Concat(objects, claims, theirs)...)
	c.collects(t)
	c.add(t, first, members)
	c.waitBound(t, members)
	c.end(t, members)
	c.waitGone(t, members)
	c.add(t, second, others)
	c.waitBound(t, others)
}

// Everything is taken by a gang with devices that ends in an hour. The first of the queue has a place there, devices and all.
func TestAPlaceWithDevicesIsKept(t *testing.T) {
	nodes := cliques(1, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 4, 0))
	}
	group, members, claims := claiming("runs", 4, 4, "gpu")
	allocated(members, claims, 4, inClique(0, 4)...)
	since(group, members, time.Minute, 0)
	waits, its, itsClaims := claiming("waits", 2, 4, "gpu")
	c := listed(t, slices.Concat(objects, as(endsIn(group, time.Hour)), as(members...), claims, itsClaims)...)
	c.collects(t)
	c.add(t, waits, its)
	if why := c.waitRejected(
		t,
		"waits",
	); !strings.Contains(
		why,
		"a place is reserved for it in fabric.0, expected to be free at ",
	) {
		t.Errorf("it waits for: %s", why)
	}
	c.end(t, members)
	c.waitBound(t, its)
}

// Two of four nodes are taken by a gang with devices that ends in an hour, and the first of the queue needs the devices of all four. One
// that ends before that passes on the others; one of which nobody knows its end does not.
func TestOnlyWhoEndsInTimePassesAPlaceWithDevices(t *testing.T) {
	nodes := cliques(1, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 4, 0))
	}
	group, members, claims := claiming("runs", 2, 4, "gpu")
	allocated(members, claims, 4, nodeName(0, 0), nodeName(0, 1))
	since(group, members, time.Minute, 0)
	first, its, itsClaims := claiming("first", 4, 4, "gpu")
	long, stays, staysClaims := claiming("long", 2, 4, "gpu")
	short, passes, passesClaims := claiming("short", 2, 4, "gpu")
	for i, g := range []*schedulingv1beta1.PodGroup{first, long, short} {
		queuedAt(g, i)
	}
	c := listed(t, slices.Concat(objects, as(endsIn(group, time.Hour)), as(members...),
		claims, itsClaims, staysClaims, passesClaims)...)
	c.collects(t)
	c.add(t, first, its)
	if why := c.waitRejected(
		t,
		"first",
	); !strings.Contains(
		why,
		"a place is reserved for it in fabric.0, expected to be free at ",
	) {
		t.Errorf("the first waits for: %s", why)
	}
	c.add(t, long, stays)
	c.waitRejected(t, "long")
	c.add(t, endsIn(short, time.Minute), passes)
	c.waitBound(t, passes)
	c.nobodyBound(t, stays)
	c.end(t, passes)
	c.end(t, members)
	c.waitBound(t, its)
}

// One node is free, and the first of the queue needs all four pairs of it and of another, which is taken for an hour. Who needs three
// pairs asks for something else: it does not get them there.
func TestOtherDevicesOfAKeptPlaceAreKeptToo(t *testing.T) {
	nodes := cliques(1, 2)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 4, 0))
	}
	group, members, claims := claiming("runs", 1, 4, "gpu")
	allocated(members, claims, 4, nodeName(0, 0))
	since(group, members, time.Minute, 0)
	first, its, itsClaims := claiming("first", 2, 4, "gpu")
	other, three, threeClaims := claiming("other", 1, 3, "gpu")
	queuedAt(first, 0)
	queuedAt(other, 1)
	c := listed(
		t,
		slices.Concat(objects, as(endsIn(group, time.Hour)), as(members...), claims, itsClaims, threeClaims)...)
	c.collects(t)
	c.add(t, first, its)
	c.waitRejected(t, "first")
	c.add(t, other, three)
	if why := c.waitRejected(t, "other"); !strings.Contains(why, "reserved for default/first") {
		t.Errorf("the other waits for: %s", why)
	}
	c.end(t, members)
	c.waitBound(t, its)
}

// Gangs with devices run in both cliques. The first of the queue may end nobody, and keeps the place of the one that ends in a quarter of an hour. Who
// is behind it, with the same devices, may end the other. What becomes free is for the first, and then there is nobody before the second.
func TestWhoIsBehindTheFirstEndsOthersForDevices(t *testing.T) {
	nodes := cliques(2, 2)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 4, 0))
	}
	for i, name := range []string{"ends", "stays"} {
		group, members, claims := claiming(name, 2, 4, "gpu")
		allocated(members, claims, 4, inClique(i, 2)...)
		since(group, members, time.Minute, 0)
		if name == "ends" {
			group = endsIn(group, 15*time.Minute)
		}
		objects = slices.Concat(objects, as(group), as(members...), claims)
	}
	first, its, itsClaims := claiming("first", 2, 4, "gpu")
	raise(first, its, 100)
	for _, pod := range its {
		pod.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	}
	second, theirs, theirClaims := claiming("second", 2, 4, "gpu")
	raise(second, theirs, 50)
	c := listed(t, slices.Concat(objects, itsClaims, theirClaims)...)
	c.collects(t)
	c.add(t, first, its)
	if why := c.waitRejected(t, "first"); !strings.Contains(why, "a place is reserved for it in fabric.0") {
		t.Fatalf("the first waits for: %s", why)
	}
	c.add(t, second, theirs)
	if got := c.waitBound(t, its); !slices.Equal(got, inClique(1, 2)) {
		t.Errorf("the first is on %v", got)
	}
	c.waitBound(t, theirs)
}

// What is configured for a plugin that takes nothing is a mistake, and not passed over.
func TestTheDevicesPluginTakesNoArguments(t *testing.T) {
	_, err := devices.New(&devices.Shared{}, gangplacement.Planned, timing.With(clock.RealClock{}))(
		t.Context(), &runtime.Unknown{Raw: []byte(`{"filterTimeout": "1s"}`)}, nil)
	if err == nil || !strings.Contains(err.Error(), "no arguments") {
		t.Errorf("error is %v", err)
	}
}
