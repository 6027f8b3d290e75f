//go:build !race

package devices_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// closeNode cordons the node of a name if the object is it.
func closeNode(o runtime.Object, name string) {
	if node, ok := o.(*corev1.Node); ok && node.Name == name {
		node.Spec.Unschedulable = true
	}
}

// A start was torn: the devices of one member are allocated on a node that is closed now, and no member has a node. The
// gang gives them back and starts in the other clique; another gang, which needs them, has them when the node is open
// again.
//
//	c0: n0 closed, n1    c1: n0 n1
func TestDevices_WaitingGangReleasesAllocations(t *testing.T) {
	t.Parallel()
	for name, allocate := range map[string]func(claim *resourcev1.ResourceClaim){
		"reserved for the member": func(*resourcev1.ResourceClaim) {},
		"reserved for nobody":     func(claim *resourcev1.ResourceClaim) { claim.Status.ReservedFor = nil },
	} {
		t.Run(name, func(t *testing.T) {
			group, members, claims := schedulertest.PairGang("gang", 2, 1, "gpu")
			schedulertest.Allocate(members[0], claims[0], devicestest.Allocation(schedulertest.NodeName(0, 0), 1))
			torn, _ := claims[0].(*resourcev1.ResourceClaim)
			allocate(torn)
			objects := schedulertest.PairedCliques(2, 2, 1)
			for _, o := range objects {
				closeNode(o, schedulertest.NodeName(0, 0))
			}
			c := schedulertest.NewCluster(t, objects, group, claims, members)
			if at := c.WaitBound(t, members); !slices.Equal(at, schedulertest.CliqueNodes(1, 2)) {
				t.Fatalf("the gang is on %v", at)
			}
			claim, err := c.ResourceV1().
				ResourceClaims(schedulertest.Namespace).
				Get(t.Context(), torn.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if at := claim.Status.Allocation.Devices.Results[0].Pool; at != schedulertest.NodeName(1, 0) {
				t.Errorf("the devices of the first member are on %s", at)
			}
		})
	}
}

// Devices of a pod with a node remain its own, whichever member of its gang waits.
func TestDevices_RunningMembersRetainAllocations(t *testing.T) {
	t.Parallel()
	group, members, claims := schedulertest.PairGang("gang", 2, 1, "gpu")
	schedulertest.AllocatePairs(members[:1], claims[:1], 1, schedulertest.NodeName(0, 0))
	objects := schedulertest.PairedCliques(1, 2, 1)
	for _, o := range objects {
		closeNode(o, schedulertest.NodeName(0, 1))
	}
	c := schedulertest.NewCluster(t, objects, group, claims, members)
	c.WaitRejected(t, "gang")
	has, _ := claims[0].(*resourcev1.ResourceClaim)
	claim, err := c.ResourceV1().ResourceClaims(schedulertest.Namespace).Get(t.Context(), has.Name, metav1.GetOptions{})
	if err != nil || claim.Status.Allocation == nil || len(claim.Status.ReservedFor) != 1 {
		t.Errorf("the member that runs has lost its devices: %v, %v", claim.Status, err)
	}
}

// Half of a gang runs, and the others have no nodes: they were lost, or a scheduler died in the middle of the start and
// their devices are allocated, each on a node of its own. Then each is a member of another kind, more kinds than a plan
// takes. They give the devices back and join the others, which stay where they are.
func TestDevices_ManyMembersJoinTheirGang(t *testing.T) {
	t.Parallel()
	for name, torn := range map[string]bool{"lost": false, "torn start": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 64
			group, members, claims := schedulertest.PairGang("gang", size, 1, "gpu")
			nodes := schedulertest.CliqueNodes(0, size)
			schedulertest.AllocatePairs(members[:size/2], claims[:size/2], 1, nodes[:size/2]...)
			schedulertest.SetRunning(group, members[:size/2], time.Minute, 0)
			for i := size / 2; i < size && torn; i++ {
				schedulertest.Allocate(members[i], claims[i], devicestest.Allocation(nodes[i], 1))
			}
			c := schedulertest.NewCluster(t, schedulertest.PairedCliques(1, size, 1), group, claims, members)
			c.WaitBound(t, members[size/2:])
			if _, evicted := c.Evictions("gang"); len(evicted) > 0 {
				t.Errorf("%d members were evicted", len(evicted))
			}
		})
	}
}
