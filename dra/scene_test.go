package dra_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/dra"
)

// scene is a small cluster with everything that the device API knows, and the claims of one pod.
type scene struct {
	nodes   []*corev1.Node
	slices  []*resourcev1.ResourceSlice
	classes []*resourcev1.DeviceClass
	taken   []*resourcev1.ResourceClaim
	claims  []*resourcev1.ResourceClaim
}

func (s *scene) class(name string) *resourcev1.DeviceClass {
	for _, c := range s.classes {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *scene) fleet() dra.Fleet {
	return dra.Fleet{Inventory: dra.NewInventory(s.slices, s.nodes...), Ledger: dra.NewLedger(s.taken...)}
}

// String writes the scene as YAML, with fields that are always the same left out.
func (s *scene) String() string {
	var b strings.Builder
	write := func(what string, o any) {
		text, err := yaml.Marshal(o)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "--- %s\n%s", what, text)
	}
	for _, o := range s.slices {
		write(o.Name, o.Spec)
	}
	for _, o := range s.taken {
		write("taken by "+o.Name, o.Status.Allocation.Devices.Results)
	}
	for _, o := range s.claims {
		write("wanted by "+o.Name, o.Spec.Devices)
	}
	return b.String()
}

// native is the allocator as the in-tree plugin uses it: all slices of the cluster, all that is taken.
type native struct {
	*scene

	compiled *cel.Cache
}

func (n native) Get(name string) (*resourcev1.DeviceClass, error) {
	if c := n.class(name); c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "deviceclasses"}, name)
}

func (n native) List() ([]*resourcev1.DeviceClass, error) { return n.classes, nil }

// pods gives one pod after another to the node until the next does not fit; at most the limit.
func (n native) pods(ctx context.Context, t failer, node *corev1.Node, limit int) int {
	t.Helper()
	taken := n.taken
	for pods := range limit {
		a, err := structured.NewAllocator(ctx, dra.DefaultFeatures(), gather(taken), n, n.slices, n.compiled)
		if err != nil {
			t.Fatalf("new allocator: %v", err)
		}
		results, err := a.Allocate(ctx, node, n.claims)
		if err != nil || results == nil {
			return pods
		}
		for i := range results {
			taken = append(slices.Clip(taken), &resourcev1.ResourceClaim{
				ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("native", pods, i))},
				Status:     resourcev1.ResourceClaimStatus{Allocation: &results[i]},
			})
		}
	}
	return limit
}

// failer is a test of any kind.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

var (
	_ failer = (*testing.T)(nil)
	_ failer = (*testing.B)(nil)
)

// gather returns the devices that claims have taken, as the in-tree plugin computes it.
func gather(claims []*resourcev1.ResourceClaim) structured.AllocatedState {
	s := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, c := range claims {
		for _, r := range c.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case r.AdminAccess != nil && *r.AdminAccess:
			case r.ShareID != nil:
				s.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				if r.ConsumedCapacity != nil {
					s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
				}
			default:
				s.AllocatedDevices.Insert(id)
			}
		}
	}
	return s
}
