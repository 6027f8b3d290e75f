package devices_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// binding is a node with one pair of a GPU and a NIC, kube-scheduler's own manager of its devices, a pod that claims
// the pair, and a gang that asks for a pair, too.
type binding struct {
	manager fwk.SharedDRAManager
	cache   *assumecache.AssumeCache
	pod     *corev1.Pod
	claim   *resourcev1.ResourceClaim
	stock   *devices.Stock
	// room returns the number of members of the gang that get a pair.
	room func() int64
}

func newBinding(t *testing.T) *binding {
	t.Helper()
	node := schedulertest.Cliques(1, 1)[0]
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	of := factory.Resource().V1()
	store := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store(of.ResourceSlices().Informer().GetStore().Add(devicestest.Slice(node, 1, 0)))
	for _, kind := range []string{"gpu", "nic"} {
		store(of.DeviceClasses().Informer().GetStore().Add(devicestest.Class(kind)))
	}
	tracker, err := resourceslicetracker.StartTracker(t.Context(),
		resourceslicetracker.Options{SliceInformer: of.ResourceSlices(), KubeClient: fake.NewClientset()})
	store(err)
	b := &binding{cache: assumecache.NewAssumeCache(klog.Background(), nil, "ResourceClaim", "", nil)}
	b.manager, b.stock = devices.Managed(dynamicresources.NewDRAManager(t.Context(), b.cache, tracker, factory))
	_, pods, claims := schedulertest.PairGang("binds", 1, 1, "gpu")
	group, members, theirs := schedulertest.PairGang("waits", 1, 1, "gpu")
	b.pod, b.claim = pods[0], claims[0].(*resourcev1.ResourceClaim)
	b.pod.Spec.NodeName = node.Name
	assumecache.AddTestObject(b.cache, b.claim)
	assumecache.AddTestObject(b.cache, theirs[0])
	info := framework.NewNodeInfo()
	info.SetNode(node)
	reader := &waiting.Reader{Indices: snapshot.NewIndices(nil, nodehealth.Rules{}), Stock: b.stock}
	b.room = func() int64 {
		t.Helper()
		x, err := reader.Read(t.Context(), waiting.Asked{Group: group, Waiting: members, Nodes: []fwk.NodeInfo{info}})
		if err != nil {
			t.Fatal(err)
		}
		free := x.Choices[0].Ledger.Free[0]
		return free[len(free)-1]
	}
	return b
}

// version returns the claim at a version, without devices.
func (b *binding) version(version string) *resourcev1.ResourceClaim {
	claim := b.claim.DeepCopy()
	claim.ResourceVersion = version
	return claim
}

// allocated returns the claim at a version, with the node's pair.
func (b *binding) allocated(version string) *resourcev1.ResourceClaim {
	claim := b.version(version)
	schedulertest.Allocate(b.pod, claim, devicestest.Allocation(b.pod.Spec.NodeName, 1))
	return claim
}

// note notes that the claim's first version is to get the pair.
func (b *binding) note(t *testing.T) {
	t.Helper()
	err := b.manager.ResourceClaims().SignalClaimPendingAllocation(b.claim.UID, b.allocated("1"))
	if err != nil {
		t.Fatal(err)
	}
}

// expect compares the number of members of the gang that get a pair.
func (b *binding) expect(t *testing.T, want int64, when string) {
	t.Helper()
	if got := b.room(); got != want {
		t.Errorf("%s, %d members get a pair, want %d", when, got, want)
	}
}

// The devices of a pod that is being bound are not yet written. A dry run without that pod finds them free; after it
// they are taken, also if the allocation is written meanwhile.
func TestSuppose_PendingAllocationsReturn(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string]bool{"still being written": false, "written meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBinding(t)
			b.note(t)
			b.expect(t, 0, "before the dry run")
			undo := b.stock.Suppose([]snapshot.Unit{{Pods: []*corev1.Pod{b.pod}}})
			b.expect(t, 1, "in the dry run")
			if writes {
				assumecache.AddTestObject(b.cache, b.allocated("2"))
				b.manager.ResourceClaims().MaybeRemoveClaimPendingAllocation(b.claim.UID, true)
			}
			undo()
			b.expect(t, 0, "after the dry run")
		})
	}
}

// A member notes an allocation of a shared claim after another member has written one. The stock takes the written one,
// and frees it when the claim gives it back.
func TestPending_AllocatedClaimIsNotPending(t *testing.T) {
	t.Parallel()
	b := newBinding(t)
	assumecache.AddTestObject(b.cache, b.allocated("2"))
	b.note(t)
	b.expect(t, 0, "after the write")
	assumecache.AddTestObject(b.cache, b.version("3"))
	b.expect(t, 1, "given back")
}

// An allocation is given up and noted anew before the stock hears that it was given up: it stays pending.
func TestPending_NotedAgainWhileGivenUp(t *testing.T) {
	t.Parallel()
	b := newBinding(t)
	b.note(t)
	devices.Settle(b.stock, b.claim.UID, b.manager)
	b.expect(t, 0, "noted anew")
	b.manager.ResourceClaims().MaybeRemoveClaimPendingAllocation(b.claim.UID, true)
	b.expect(t, 1, "given up")
}
