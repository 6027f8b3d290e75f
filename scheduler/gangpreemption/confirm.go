package gangpreemption

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/dryrun"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// confirm runs the framework's own cycle for the gang on a snapshot without the victims, and returns where its members
// would go. Nothing of the snapshot is changed for others.
func (p *GangPreemption) confirm(
	ctx context.Context, victims []snapshot.Unit, plan dryrun.Plan, schedule fwk.PodGroupSchedulingFunc,
) (nominated nominations, status *fwk.Status) {
	lister := p.handle.MutableSnapshotSharedLister()
	if err := lister.StartMutations(); err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("changing the snapshot: %w", err))
	}
	defer func() {
		if err := lister.EndMutations(); err != nil {
			status = fwk.AsStatus(fmt.Errorf("restoring the snapshot: %w", err))
		}
	}()
	if p.stock != nil {
		defer p.stock.Suppose(victims)()
	}
	for _, u := range victims {
		for _, pod := range u.Pods {
			if err := lister.RemovePod(klog.FromContext(ctx), pod, pod.Spec.NodeName); err != nil {
				return nil, fwk.AsStatus(fmt.Errorf("taking %s off the snapshot: %w", u.Name, err))
			}
		}
	}
	assignments, status := schedule(dryrun.Of(ctx, plan))
	if !status.IsSuccess() {
		return nil, status
	}
	nominated = nominations{}
	for _, assignment := range assignments.ProposedAssignments {
		if pod := assignment.GetPod(); assignment.GetNodeName() != "" {
			nominated[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = &fwk.NominatingInfo{
				NominatingMode: fwk.ModeOverride, NominatedNodeName: assignment.GetNodeName(),
			}
		}
	}
	return nominated, nil
}
