package devices

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/dra"
)

// errNoBinding says that nothing is on its way to the API server of a Fixed.
var errNoBinding = errors.New("claims of a fixed manager have their devices at once: no pod is bound")

// Fixed holds the published devices of a cluster and their allocations as values: the manager of a stock for what-if
// questions. Its objects are never changed, only replaced. It is for one goroutine.
type Fixed struct {
	slices  []*resourcev1.ResourceSlice
	classes map[string]*resourcev1.DeviceClass
	// extended are the classes that stand for extended resources.
	extended map[corev1.ResourceName]*resourcev1.DeviceClass
	claims   map[types.NamespacedName]*resourcev1.ResourceClaim
	// listed are the claims by name, nil if they have to be listed anew.
	listed []*resourcev1.ResourceClaim
}

var _ fwk.SharedDRAManager = (*Fixed)(nil)

// NewFixed makes a manager of these. The slices are used unchanged: a caller that wants DeviceTaintRules in them has to
// add them.
func NewFixed(
	published []*resourcev1.ResourceSlice, classes []*resourcev1.DeviceClass, claims []*resourcev1.ResourceClaim,
) *Fixed {
	f := &Fixed{
		slices: published, extended: dra.ResourceClasses(classes),
		classes: make(map[string]*resourcev1.DeviceClass, len(classes)),
		claims:  make(map[types.NamespacedName]*resourcev1.ResourceClaim, len(claims)),
	}
	for _, class := range classes {
		f.classes[class.Name] = class
	}
	for _, claim := range claims {
		f.claims[nameOf(claim)] = claim
	}
	return f
}

func nameOf(claim *resourcev1.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

// Release removes the reservations of deleted consumers. A claim without reservations left is free, as the controller
// of claims makes it; one that had none before stays allocated.
func (f *Fixed) Release(gone func(resourcev1.ResourceClaimConsumerReference) bool) {
	for name, claim := range f.claims {
		left := slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), gone)
		if len(left) == len(claim.Status.ReservedFor) {
			continue
		}
		again := claim.DeepCopy()
		if again.Status.ReservedFor = left; len(left) == 0 {
			again.Status.Allocation = nil
		}
		f.claims[name] = again
		f.listed = nil
	}
}

// ResourceSlices lists all slices.
func (f *Fixed) ResourceSlices() fwk.ResourceSliceLister { return fixedSlices{f} }

// ResourceClaims lists all claims, and takes in those that are assigned.
func (f *Fixed) ResourceClaims() fwk.ResourceClaimTracker { return fixedClaims{f} }

// DeviceClasses lists all classes.
func (f *Fixed) DeviceClasses() fwk.DeviceClassLister { return fixedClasses{f} }

// DeviceClassResolver finds the classes that stand for extended resources.
func (f *Fixed) DeviceClassResolver() fwk.DeviceClassResolver { return fixedClasses{f} }

type fixedSlices struct{ *Fixed }

// ListWithDeviceTaintRules lists the slices as they were given.
func (f fixedSlices) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	return f.slices, nil
}

type fixedClasses struct{ *Fixed }

// Get returns a class, or an error that there is none.
func (f fixedClasses) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := f.classes[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("finding a class: %w", apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name))
}

// List lists them by name.
func (f fixedClasses) List() ([]*resourcev1.DeviceClass, error) {
	all := slices.Collect(maps.Values(f.classes))
	slices.SortFunc(all, func(a, b *resourcev1.DeviceClass) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// GetDeviceClass returns the class that stands for an extended resource, nil for none.
func (f fixedClasses) GetDeviceClass(name corev1.ResourceName) *resourcev1.DeviceClass {
	return f.extended[name]
}

type fixedClaims struct{ *Fixed }

// Get returns a claim, or an error that there is none.
func (f fixedClaims) Get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	if claim := f.claims[types.NamespacedName{Namespace: namespace, Name: name}]; claim != nil {
		return claim, nil
	}
	return nil, fmt.Errorf("finding a claim: %w", apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), name))
}

// List lists them by namespace and name.
func (f fixedClaims) List() ([]*resourcev1.ResourceClaim, error) {
	if f.listed == nil {
		f.listed = slices.SortedFunc(maps.Values(f.claims), func(a, b *resourcev1.ResourceClaim) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return f.listed, nil
}

// AssumeClaimAfterAPICall puts the claim in the place of the one of its name.
func (f fixedClaims) AssumeClaimAfterAPICall(claim *resourcev1.ResourceClaim) error {
	f.claims[nameOf(claim)] = claim
	f.listed = nil
	return nil
}

// ListAllAllocatedDevices is for schedulers that bind.
func (fixedClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	return nil, errNoBinding
}

// GatherAllocatedState is for schedulers that bind.
func (fixedClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	return nil, errNoBinding
}

// SignalClaimPendingAllocation is for schedulers that bind.
func (fixedClaims) SignalClaimPendingAllocation(types.UID, *resourcev1.ResourceClaim) error {
	return errNoBinding
}

// GetPendingAllocation is always nil.
func (fixedClaims) GetPendingAllocation(types.UID) *resourcev1.AllocationResult { return nil }

// MaybeRemoveClaimPendingAllocation never removes anything.
func (fixedClaims) MaybeRemoveClaimPendingAllocation(types.UID, bool) bool { return false }

// AssumedClaimRestore restores nothing.
func (fixedClaims) AssumedClaimRestore(string, string) {}
