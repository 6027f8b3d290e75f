package devices_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// atDesk is a claim on a fake API server, which members write through a desk and others write past it.
type atDesk struct {
	t              *testing.T
	desk, API      resourceclient.ResourceClaimInterface
	cluster        *schedulertest.Cluster
	chosen, others *resourcev1.AllocationResult
}

func newAtDesk(t *testing.T) *atDesk {
	t.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       schedulertest.Namespace,
			Name:            "claim",
			UID:             "claim",
			ResourceVersion: "1",
		},
	}
	c := schedulertest.NewUnstartedCluster(t, claim)
	of := func(device string) *resourcev1.AllocationResult {
		return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Device: device}},
		}}
	}
	d := &atDesk{t: t, cluster: c, chosen: of("a"), others: of("b")}
	d.API = c.ResourceV1().ResourceClaims(schedulertest.Namespace)
	d.desk = devices.AtDesk(c, func(types.UID) *resourcev1.AllocationResult { return d.chosen }).
		ResourceV1().ResourceClaims(schedulertest.Namespace)
	return d
}

func (d *atDesk) get() *resourcev1.ResourceClaim {
	d.t.Helper()
	claim, err := d.API.Get(d.t.Context(), "claim", metav1.GetOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return claim
}

// change writes past the desk.
func (d *atDesk) change(how func(*resourcev1.ResourceClaim)) {
	d.t.Helper()
	claim := d.get()
	how(claim)
	if _, err := d.API.UpdateStatus(d.t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// reserve does for a member the work of the in-tree plugin, with a claim as it was seen.
func (d *atDesk) reserve(
	seen *resourcev1.ResourceClaim, member string, chosen *resourcev1.AllocationResult,
) (*resourcev1.ResourceClaim, error) {
	claim := seen.DeepCopy()
	if claim.Status.Allocation == nil {
		claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
		updated, err := d.desk.Update(d.t.Context(), claim, metav1.UpdateOptions{})
		if err != nil {
			return nil, fmt.Errorf("adding the finalizer: %w", err)
		}
		claim = updated
		claim.Status.Allocation = chosen.DeepCopy()
		claim.Status.Allocation.AllocationTimestamp = new(metav1.Now())
	}
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, consumer(member))
	return d.desk.UpdateStatus(d.t.Context(), claim, metav1.UpdateOptions{})
}

func consumer(member string) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: member, UID: types.UID(member)}
}

// Members that saw an old version do not lose later writes of others: devices that the driver reports, members that
// were added and removed.
func TestDesk_KeepsWhatOthersWrote(t *testing.T) {
	d := newAtDesk(t)
	seen := d.get()
	if _, err := d.reserve(seen, "first", d.chosen); err != nil {
		t.Fatal(err)
	}
	d.change(func(claim *resourcev1.ResourceClaim) {
		claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Device: "a"}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{consumer("other")}
	})
	d.chosen = nil // that was for the first
	written, err := d.reserve(seen, "second", &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Device: "a"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	have := d.get()
	if got := have.Status.ReservedFor; len(got) != 2 || got[0] != consumer("other") || got[1] != consumer("second") {
		t.Errorf("the claim is reserved for %v, want other, second", got)
	}
	if len(have.Status.Devices) != 1 || len(have.Finalizers) != 1 || written.ResourceVersion != have.ResourceVersion {
		t.Errorf("the claim is %+v", have)
	}
}

// A member is refused, as Kubernetes would refuse it, if the claim has other devices by now, or none: those that it was
// given may be another claim's. Nothing is written.
func TestDesk_RefusesOtherDevices(t *testing.T) {
	for name, c := range map[string]struct {
		now  func(*atDesk) *resourcev1.AllocationResult
		seen func(*atDesk) *resourcev1.AllocationResult
	}{
		"allocated elsewhere": {
			func(d *atDesk) *resourcev1.AllocationResult { return d.others },
			func(*atDesk) *resourcev1.AllocationResult { return nil },
		},
		"given back": {
			func(*atDesk) *resourcev1.AllocationResult { return nil },
			func(d *atDesk) *resourcev1.AllocationResult { return d.chosen },
		},
		"given back and allocated again": {
			func(d *atDesk) *resourcev1.AllocationResult { return d.others },
			func(d *atDesk) *resourcev1.AllocationResult { return d.chosen },
		},
	} {
		d := newAtDesk(t)
		d.change(func(claim *resourcev1.ResourceClaim) { claim.Status.Allocation = c.seen(d) })
		seen, chosen := d.get(), d.chosen
		d.change(func(claim *resourcev1.ResourceClaim) { claim.Status.Allocation = c.now(d) })
		before := d.get()
		if c.seen(d) != nil {
			d.chosen = nil // it was written long ago
		}
		if _, err := d.reserve(seen, "late", chosen); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
		if got := d.get().Status; len(got.ReservedFor) > 0 || !sameDevice(got.Allocation, before.Status.Allocation) {
			t.Errorf("%s: the claim is %+v, want it as it was", name, got)
		}
	}
}

func sameDevice(a, b *resourcev1.AllocationResult) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Devices.Results[0].Device == b.Devices.Results[0].Device)
}

// A claim is for 256 at most. A member that is too late is refused, and no other.
func TestDesk_RefusesWhoIsTooMany(t *testing.T) {
	t.Parallel()
	const limit = resourcev1.ResourceClaimReservedForMaxSize
	d := newAtDesk(t)
	d.cluster.PrependReactor(
		"update",
		"resourceclaims",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			update, _ := action.(clienttesting.UpdateAction)
			if claim, _ := update.GetObject().(*resourcev1.ResourceClaim); len(claim.Status.ReservedFor) > limit {
				return true, nil, apierrors.NewInvalid(
					resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(),
					"claim",
					nil,
				)
			}
			return false, nil, nil
		},
	)
	seen := d.get()
	errs := make([]error, limit+20)
	var members sync.WaitGroup
	for i := range errs {
		members.Go(func() { _, errs[i] = d.reserve(seen, fmt.Sprint("member-", i), d.chosen) })
	}
	members.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			refused++
		}
	}
	if got := len(d.get().Status.ReservedFor); refused != 20 || got != limit {
		t.Errorf("%d were refused, want 20; the claim is reserved for %d, want %d", refused, got, limit)
	}
}

// A write that gives devices back is not a member's reservation: it passes straight to the API server.
func TestDesk_LetsDevicesBeGivenBack(t *testing.T) {
	d := newAtDesk(t)
	if _, err := d.reserve(d.get(), "member", d.chosen); err != nil {
		t.Fatal(err)
	}
	claim := d.get()
	claim.Status = resourcev1.ResourceClaimStatus{}
	claim, err := d.desk.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	if err != nil || claim.Status.Allocation != nil {
		t.Fatalf("the claim is %v, %v", claim, err)
	}
	claim.Finalizers = nil
	claim, err = d.desk.Update(t.Context(), claim, metav1.UpdateOptions{})
	if err != nil || len(claim.Finalizers) != 0 {
		t.Errorf("the claim is %v, %v", claim, err)
	}
}

// loses has the server carry out the next n writes to the claim's status, and lose its answers; the reads after them
// fail as often.
func (d *atDesk) loses(n int) {
	lost, unread := n, 0
	d.cluster.PrependReactor(
		"update",
		"resourceclaims",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			update, ok := action.(clienttesting.UpdateAction)
			if !ok || action.GetSubresource() != "status" || lost == 0 {
				return false, nil, nil
			}
			lost--
			unread++
			if err := d.cluster.Tracker().
				Update(action.GetResource(), update.GetObject(), action.GetNamespace()); err != nil {
				return true, nil, fmt.Errorf("carrying out a write: %w", err)
			}
			return true, nil, errors.New("http2: client connection lost")
		},
	)
	d.cluster.PrependReactor("get", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		if unread == 0 {
			return false, nil, nil
		}
		unread--
		return true, nil, errors.New("connection refused")
	})
}

// The devices of a write whose answer was lost are the member's: a caller that receives an error would give them to
// another.
func TestDesk_LosesAnAnswer(t *testing.T) {
	d := newAtDesk(t)
	seen := d.get()
	d.loses(2)
	written, err := d.reserve(seen, "a", d.chosen)
	if err != nil {
		t.Fatal(err)
	}
	now := d.get()
	if written.ResourceVersion != now.ResourceVersion || len(now.Status.ReservedFor) != 1 ||
		now.Status.Allocation == nil {
		t.Errorf("the member got %v of %v", written.Status, now.Status)
	}
}

// A write that the API server refuses is refused, and a write that fails at every attempt fails in the end.
func TestDesk_Refused(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(resourcev1.Resource("resourceclaims"), "claim", errors.New("no")),
		"a webhook": apierrors.NewInternalError(errors.New("failed calling webhook")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newAtDesk(t)
				d.cluster.PrependReactor("update", "resourceclaims",
					func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
				if _, err := d.reserve(d.get(), "a", d.chosen); !errors.Is(err, refusal) {
					t.Errorf("the member is told %v", err)
				}
			})
		})
	}
}
