// Package defaultpreemption is the in-tree plugin DefaultPreemption, whose hypothetical cycles are marked as such.
package defaultpreemption

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/lockstep-project/lockstep/scheduler/dryrun"
)

// Name is the plugin's name in the scheduler's configuration. It replaces DefaultPreemption at all points: two of them would not know of
// each other's evictions.
const Name = "LockstepDefaultPreemption"

// LockstepDefaultPreemption is DefaultPreemption. What it asks the framework about a fleet without victims is a dry run.
type LockstepDefaultPreemption struct {
	*defaultpreemption.DefaultPreemption
}

var (
	_ fwk.PostFilterPlugin         = (*LockstepDefaultPreemption)(nil)
	_ fwk.PreEnqueuePlugin         = (*LockstepDefaultPreemption)(nil)
	_ fwk.PodGroupPostFilterPlugin = (*LockstepDefaultPreemption)(nil)
)

// New makes the plugin, with kube-scheduler's defaults.
func New(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if raw, ok := object.(*runtime.Unknown); ok && len(raw.Raw) > 0 {
		return nil, errors.New("it takes no arguments: remove its pluginConfig")
	}
	const percent, absolute = 10, 100 // SetDefaults_DefaultPreemptionArgs of kube-scheduler's v1 configuration
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: percent, MinCandidateNodesAbsolute: absolute}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	inTree, err := defaultpreemption.New(ctx, args, handle, features)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", defaultpreemption.Name, err)
	}
	return &LockstepDefaultPreemption{inTree}, nil
}

// Name returns the plugin's name.
func (*LockstepDefaultPreemption) Name() string { return Name }

// PodGroupPostFilter preempts for a group. Its trials are dry runs.
func (p *LockstepDefaultPreemption) PodGroupPostFilter(
	ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return p.DefaultPreemption.PodGroupPostFilter(dryrun.With(ctx), state, info, schedule)
}
