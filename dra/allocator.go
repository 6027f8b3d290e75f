package dra

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Features are the parts of Kubernetes' device API that the cluster has switched on.
type Features = structured.Features

// DefaultFeatures returns the features that Kubernetes 1.37 enables by default.
func DefaultFeatures() Features {
	return Features{
		AdminAccess:             true,
		ConsumableCapacity:      true,
		DeviceBindingAndStatus:  true,
		DeviceTaints:            true,
		FractionalCapacityRange: true,
		PartitionableDevices:    true,
		PrioritizedList:         true,
	}
}

// question is the allocator's input: whether the node can give these claims, all of them together.
type question struct {
	node          *corev1.Node
	slices        []*resourcev1.ResourceSlice
	taken         structured.AllocatedState
	deviceClasses deviceClasses
	claims        []*resourcev1.ResourceClaim
	steps         int64
}

// allocator assigns devices. The only implementation is upstream's.
type allocator interface {
	// allocate returns one result for each claim, or nil if the node cannot give them. errTooLong indicates that the
	// budget of steps ended the search, errNode a fault of the node's devices; every other error is about the question
	// itself.
	allocate(ctx context.Context, q question) ([]resourcev1.AllocationResult, error)
}

var (
	errTooLong = errors.New("the search took too many steps")
	errNode    = errors.New("a resource pool of the node is invalid")
)

// upstream is Kubernetes' structured allocator.
type upstream struct {
	features Features
	compiled *cel.Cache
}

// expressions is the number of compiled CEL expressions that are retained. The in-tree plugin retains 10, which
// thrashes as soon as workloads mix; compiling one takes milliseconds.
const expressions = 1024

func newCompiler(features Features) *cel.Cache {
	return cel.NewCache(expressions, cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	})
}

func (u *upstream) allocate(ctx context.Context, q question) ([]resourcev1.AllocationResult, error) {
	a, err := structured.NewAllocator(ctx, u.features, q.taken, q.deviceClasses, q.slices, u.compiled)
	if err != nil {
		return nil, fmt.Errorf("make an allocator for node %s: %w", q.node.Name, err)
	}
	counted := &counted{bounded: ctx, left: q.steps}
	results, err := a.Allocate(counted, q.node, q.claims)
	switch {
	case err == nil:
		return results, nil
	case counted.left < 0 && ctx.Err() == nil:
		return nil, errTooLong
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return nil, errNode
	}
	return nil, fmt.Errorf("allocate on node %s: %w", q.node.Name, err)
}

// bounded is the context whose search is counted.
type bounded interface{ context.Context }

// counted is a context that ends after a number of reads of its error. The allocator looks once at each step of its
// search, so this bounds the work without a clock: the same question gets the same answer on any machine.
type counted struct {
	bounded

	left int64
}

// Err implements context.Context.
func (c *counted) Err() error {
	if err := c.bounded.Err(); err != nil {
		return err
	}
	c.left--
	if c.left < 0 {
		return errTooLong
	}
	return nil
}

// deviceClasses are the DeviceClasses of one demand by name, as the allocator looks them up.
type deviceClasses map[string]*resourcev1.DeviceClass

// Get implements structured.DeviceClassLister.
func (c deviceClasses) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf(
		"find a class of the demand: %w",
		apierrors.NewNotFound(schema.GroupResource{Group: resourcev1.GroupName, Resource: "deviceclasses"}, name),
	)
}

// List implements structured.DeviceClassLister.
func (c deviceClasses) List() ([]*resourcev1.DeviceClass, error) {
	all := make([]*resourcev1.DeviceClass, 0, len(c))
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}
