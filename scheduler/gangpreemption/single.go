package gangpreemption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// PostFilter carries out the evictions that a pod in no gang needs. The queue chooses them as it does for gangs, if the
// pod requests accelerators and nothing but resources and rules about nodes decides about it; the plugins that follow
// serve the others.
func (p *GangPreemption) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	needs := waiting.NeedsOf(state)
	if needs == nil || needs.Question.Accelerators == 0 || p.queue.PreemptionRefused(waiting.IDOfPod(pod)) {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	x, out := needs.Question, needs.Outcome
	if out.Wait.Cause == contention.Victims && len(needs.Place) > 0 && out.Lease.Reason == contention.Preemption {
		return p.preemptForPod(ctx, state, needs)
	}
	for _, of := range out.Preempted { // they use a place until its instant
		p.leave(ctx, needs, of, p.units(x, of.Victims))
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no eviction of less important workloads makes room")
}

// preemptForPod has the victims of a pod leave, if the framework's filters confirm that it can run in their place then.
func (p *GangPreemption) preemptForPod(
	ctx context.Context, state fwk.CycleState, needs *waiting.Needs,
) (*fwk.PostFilterResult, *fwk.Status) {
	x, pod, node := needs.Question, needs.Question.Waiting[0], needs.Place[0]
	for _, of := range needs.Outcome.Preempted {
		status := p.fitsWithout(ctx, state.Clone(), pod, node, p.units(x, needs.Outcome.Wait.Of))
		if !status.IsSuccess() {
			// The filters know better than the queue. In-tree preemption asks them about each victim.
			p.queue.RefusePreemption(waiting.IDOfPod(pod))
			return nil, fwk.NewStatus(
				fwk.Unschedulable, "the pod could not run in the place of its victims: "+status.Message())
		}
		p.leave(ctx, needs, of, p.units(x, of.Victims))
	}
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{
		NominatingMode: fwk.ModeOverride, NominatedNodeName: node,
	}}, nil
}

// fitsWithout runs the framework's filters on a node that the victims have left. The state is changed.
func (p *GangPreemption) fitsWithout(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string, victims []snapshot.Unit,
) *fwk.Status {
	nodes := make(map[string]fwk.NodeInfo)
	find := func(name string) (fwk.NodeInfo, error) {
		if nodes[name] == nil {
			found, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name)
			if err != nil {
				return nil, fmt.Errorf("node %s: %w", name, err)
			}
			nodes[name] = found.Snapshot()
		}
		return nodes[name], nil
	}
	for _, u := range victims {
		for _, leaves := range u.Pods {
			at, err := find(leaves.Spec.NodeName)
			if err != nil {
				return fwk.AsStatus(err)
			}
			if status := p.takeOff(ctx, state, pod, leaves, at); !status.IsSuccess() {
				return status
			}
		}
	}
	at, err := find(node)
	if err != nil {
		return fwk.AsStatus(err)
	}
	return p.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, at)
}

// takeOff takes a pod off a node, and out of the state of the cycle.
func (p *GangPreemption) takeOff(
	ctx context.Context, state fwk.CycleState, pod, leaves *corev1.Pod, at fwk.NodeInfo,
) *fwk.Status {
	for _, info := range at.GetPods() {
		if info.GetPod().UID != leaves.UID {
			continue
		}
		if err := at.RemovePod(klog.FromContext(ctx), leaves); err != nil {
			return fwk.AsStatus(fmt.Errorf("taking %s off %s: %w", leaves.Name, at.Node().Name, err))
		}
		return p.handle.RunPreFilterExtensionRemovePod(ctx, state, pod, info, at)
	}
	return nil
}
