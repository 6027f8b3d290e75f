// Package defaultpreemption is the in-tree plugin DefaultPreemption, for pods about which more decides than package
// contention knows: volumes, ports, rules between pods, claims. It finds victims as kube-scheduler does, and of several
// prefers those that lose least, as gangs do. Its hypothetical cycles are marked as such.
package defaultpreemption

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/lockstep-project/lockstep/scheduler/dryrun"
)

// Name is the plugin's name in the scheduler's configuration. It replaces DefaultPreemption at all points: two of them
// would not know of each other's evictions.
const Name = "LockstepDefaultPreemption"

// LockstepDefaultPreemption is DefaultPreemption, with an order of its own. Its questions to the framework about a
// fleet without victims are a dry run.
type LockstepDefaultPreemption struct {
	*defaultpreemption.DefaultPreemption

	losses Losses
}

// Losses reports the cost of evictions. Its methods are called concurrently.
type Losses interface {
	// LostWork returns the accelerator-seconds that are lost if these pods leave, and the gangs with them all of whose
	// pods these are.
	LostWork(pods []*corev1.Pod) int64
	// Protects reports whether an administrator exempts one of the pods from preemption.
	Protects(pods []*corev1.Pod) bool
}

var (
	_ fwk.PostFilterPlugin         = (*LockstepDefaultPreemption)(nil)
	_ fwk.PreEnqueuePlugin         = (*LockstepDefaultPreemption)(nil)
	_ fwk.PodGroupPostFilterPlugin = (*LockstepDefaultPreemption)(nil)
)

// New returns the plugin's factory. It has kube-scheduler's defaults.
func New(losses Losses) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if raw, ok := object.(*runtime.Unknown); ok && len(raw.Raw) > 0 {
			return nil, errors.New(Name + ": takes no arguments; remove its entry from pluginConfig")
		}
		const percent, absolute = 10, 100 // SetDefaults_DefaultPreemptionArgs of kube-scheduler's v1 configuration
		args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: percent, MinCandidateNodesAbsolute: absolute}
		handle = wholeGangs{handle}
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		inTree, err := defaultpreemption.New(ctx, args, handle, features)
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", defaultpreemption.Name, err)
		}
		p := &LockstepDefaultPreemption{DefaultPreemption: inTree, losses: losses}
		inTree.IsEligiblePod, inTree.MoreImportantVictim = p.mayLeave, p.stays
		inTree.Evaluator = preemption.NewEvaluator(defaultpreemption.Name, handle, p, inTree.Executor)
		return p, nil
	}
}

// Name returns the plugin's name.
func (*LockstepDefaultPreemption) Name() string { return Name }

// PodGroupPostFilter preempts for a group. Its trials are dry runs.
func (p *LockstepDefaultPreemption) PodGroupPostFilter(
	ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return p.DefaultPreemption.PodGroupPostFilter(dryrun.With(ctx), state, info, schedule)
}
