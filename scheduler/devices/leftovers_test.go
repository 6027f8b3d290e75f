package devices_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// One clique is full of a gang that runs, the other of the devices of one that has ended: the garbage collector is
// late. An important gang waits for these devices, and the other one stays.
func TestLeftovers_AreAwaited(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(2, 4, 4)
	runs, running, itsClaims := schedulertest.PairGang("runs", 4, 4, "gpu")
	schedulertest.AllocatePairs(running, itsClaims, 4, schedulertest.CliqueNodes(0, 4)...)
	schedulertest.SetRunning(runs, running, time.Minute, 0)
	over, ended, left := schedulertest.PairGang("over", 4, 4, "gpu")
	schedulertest.AllocatePairs(ended, left, 4, schedulertest.CliqueNodes(1, 4)...)
	for _, pod := range ended {
		pod.Status.Phase = corev1.PodSucceeded
	}
	high, members, claims := schedulertest.PairGang("high", 4, 4, "gpu")
	schedulertest.SetPriority(high, members, 1_001_000)
	c := schedulertest.NewCluster(t, objects, runs, running, itsClaims, over, ended, left, claims)
	c.CollectClaimsAfter(t, 3*time.Second)
	c.DeletePods(t, ended)
	c.Create(t, high, members)
	c.WaitBound(t, members)
	if _, deleted := c.Evictions("runs"); len(deleted) > 0 {
		t.Errorf("%v were evicted", deleted)
	}
}

// The devices of a pod that is gone are never given back. A gang waits for them for half a minute, for as long again
// whenever another claim is given back, and from the eleventh minute on as if they were in use.
func TestLeftovers_AreNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	node := schedulertest.Cliques(1, 1)[0]
	group, members, claims := schedulertest.PairGang("waits", 1, 2, "gpu")
	_, gone, left := schedulertest.PairGang("gone", 4, 1, "gpu")
	all := []*resourcev1.ResourceClaim{claims[0].(*resourcev1.ResourceClaim)}
	for i, o := range left { // each has a pair; two are never given back
		claim := o.(*resourcev1.ResourceClaim)
		schedulertest.Allocate(gone[i], claim, devicestest.Allocation(node.Name, 1))
		for r := range claim.Status.Allocation.Devices.Results {
			device := &claim.Status.Allocation.Devices.Results[r]
			device.Device = strings.Replace(device.Device, "-0", fmt.Sprint("-", i), 1)
		}
		all = append(all, claim)
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	fixed := devices.NewFixed([]*resourcev1.ResourceSlice{devicestest.Slice(node, 4, 0)},
		[]*resourcev1.DeviceClass{devicestest.Class("gpu"), devicestest.Class("nic")}, all)
	reader := &waiting.Reader{
		Indices: snapshot.NewIndices(nil, nodehealth.Rules{}), Stock: new(devices.Shared).Stock(fixed),
		Lives: func(_ string, of resourcev1.ResourceClaimConsumerReference) bool {
			return !slices.ContainsFunc(gone, func(pod *corev1.Pod) bool { return pod.UID == of.UID })
		},
	}
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, of := range []struct {
		after time.Duration
		// gives is the pod whose claim is given back before, 0 for none.
		gives int
		// want is the number of such members for which room will be free beyond that which is.
		want int64
	}{
		{after: 0, want: 2},
		{after: 30 * time.Second, want: 2},
		{after: 31 * time.Second, want: 0},
		{after: 5 * time.Minute, gives: 2, want: 2},
		{after: 11 * time.Minute, gives: 3, want: 0},
	} {
		if of.gives > 0 {
			fixed.Release(func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == gone[of.gives].UID })
		}
		x, err := reader.Read(t.Context(), waiting.Asked{
			Group: group, Waiting: members, Nodes: []fwk.NodeInfo{info}, Now: began.Add(of.after),
		})
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		for _, u := range x.Choices[0].Draining() {
			for _, held := range u.Holds {
				got += held.Demand[len(held.Demand)-1]
			}
		}
		if got != of.want {
			t.Errorf("%v later: room for %d members will be given back, not for %d", of.after, got, of.want)
		}
	}
}

// A claim is reserved for a PodGroup, or for a pod that has it by name. It is left over once that is gone, and the
// stock has heard of it.
func TestLeftovers_OfConsumersThatDepart(t *testing.T) {
	t.Parallel()
	for resource, consumer := range map[string]func(*resourcev1.ResourceClaim) any{
		"pods": func(claim *resourcev1.ResourceClaim) any {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace}}
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim.Name}}
			return pod
		},
		"podgroups": func(claim *resourcev1.ResourceClaim) any {
			group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace}}
			group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "devices", ResourceClaimName: &claim.Name}}
			return cache.DeletedFinalStateUnknown{Obj: group}
		},
	} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			node := schedulertest.Cliques(1, 1)[0]
			group, members, claims := schedulertest.PairGang("waits", 1, 4, "gpu")
			_, _, left := schedulertest.PairGang("gone", 1, 4, "gpu")
			claim := left[0].(*resourcev1.ResourceClaim)
			claim.Status = resourcev1.ResourceClaimStatus{
				Allocation: devicestest.Allocation(node.Name, 4),
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{
					{Resource: resource, Name: "gone", UID: "gone"},
				},
			}
			there := true
			reader := &waiting.Reader{
				Indices: snapshot.NewIndices(nil, nodehealth.Rules{}),
				Stock: new(
					devices.Shared,
				).Stock(devices.NewFixed([]*resourcev1.ResourceSlice{devicestest.Slice(node, 4, 0)},
					[]*resourcev1.DeviceClass{devicestest.Class("gpu"), devicestest.Class("nic")},
					[]*resourcev1.ResourceClaim{claims[0].(*resourcev1.ResourceClaim), claim})),
				Lives: func(string, resourcev1.ResourceClaimConsumerReference) bool { return there },
			}
			info := framework.NewNodeInfo()
			info.SetNode(node)
			for _, want := range []int{0, 1} {
				x, err := reader.Read(t.Context(), waiting.Asked{
					Group: group, Waiting: members, Nodes: []fwk.NodeInfo{info}, Now: time.Unix(1_000_000, 0),
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := len(x.Choices[0].Draining()); got != want {
					t.Errorf("%d units leave by themselves, not %d", got, want)
				}
				there = false
				for i := range map[string]int{"pods": 100_000}[resource] { // more than are remembered one by one
					pod := &corev1.Pod{}
					pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{ResourceClaimName: new(strconv.Itoa(i))}}
					reader.Stock.Departed(pod)
				}
				reader.Stock.Departed(consumer(claim))
			}
		})
	}
}
