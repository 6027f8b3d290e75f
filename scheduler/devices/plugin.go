package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "LockstepDynamicResources"

// filterTimeout is kube-scheduler's own default.
const filterTimeout = 10 * time.Second

// LockstepDynamicResources is the in-tree plugin DynamicResources, which assigns devices, with two changes. For a pod
// with a planned node it prepares its allocator with that node's devices, not with those of the fleet, and for one that
// only shares devices of others with none. And members whose claims are being allocated enter the queue later.
type LockstepDynamicResources struct {
	*dynamicresources.DynamicResources

	handle     fwk.Handle
	manager    *manager
	planned    func(fwk.CycleState) string
	latecomers latecomers
	beside     func(func())
}

// Shared is the stock of one scheduler. The zero value has none yet.
type Shared struct{ stock *Stock }

// Stock is the stock of the manager's devices, made when it is first requested; nil without a manager.
func (s *Shared) Stock(manager fwk.SharedDRAManager) *Stock {
	if s.stock == nil && manager != nil {
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		s.stock = newStock(manager, dynamicresources.AllocatorFeatures(features))
	}
	return s.stock
}

// New returns the plugin's factory; planned is the node on which a cycle wants its pod, "" for any.
func New(
	shared *Shared, planned func(fwk.CycleState) string, t timing.Timing,
) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if raw, ok := object.(*runtime.Unknown); ok && len(raw.Raw) > 0 {
			return nil, errors.New(Name + ": takes no arguments; remove its entry from pluginConfig")
		}
		own := handle.SharedDRAManager()
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		m := &manager{
			SharedDRAManager: own, stock: func() *Stock { return shared.Stock(own) },
			looksUp: features.EnableDRANodeAllocatableResources,
		}
		args := &config.DynamicResourcesArgs{
			FilterTimeout:  &metav1.Duration{Duration: filterTimeout},
			BindingTimeout: &metav1.Duration{Duration: config.DynamicResourcesBindingTimeoutDefault},
		}
		writes := &desk{chosen: own.ResourceClaims().GetPendingAllocation, clock: t.Clock, ends: ctx.Done()}
		plugin, err := dynamicresources.New(ctx, args, managed{handle, m, atDesk{handle.ClientSet(), writes}}, features)
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", dynamicresources.Name, err)
		}
		inTree, ok := plugin.(*dynamicresources.DynamicResources)
		if !ok {
			return nil, fmt.Errorf("making %s: it is a %T, not a *DynamicResources", dynamicresources.Name, plugin)
		}
		out := &LockstepDynamicResources{
			DynamicResources: inTree,
			handle:           handle,
			manager:          m,
			planned:          planned,
			beside:           t.Beside,
		}
		m.settled = out.settled
		return out, nil
	}
}

// managed is the framework's handle with another manager and another client.
type managed struct {
	fwk.Handle
	manager *manager
	client  kubernetes.Interface
}

// ClientSet returns the other client.
func (h managed) ClientSet() kubernetes.Interface { return h.client }

// SharedDRAManager returns the other manager.
func (h managed) SharedDRAManager() fwk.SharedDRAManager { return h.manager }

// Name returns the plugin's name.
func (*LockstepDynamicResources) Name() string { return Name }

// PreFilter prepares the allocator for the devices still to be assigned.
func (p *LockstepDynamicResources) PreFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	p.manager.scope = p.manager.scopeOf(pod, p.planned(state))
	defer func() { p.manager.scope = scope{} }()
	p.manager.stock().connect(state, pod)
	return p.DynamicResources.PreFilter(ctx, state, pod, nodes)
}
