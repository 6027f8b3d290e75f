package demand

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// ReasonWaits is the reason of condition PodScheduled of members that wait, in place of Unschedulable, for which
// cluster-autoscaler and Karpenter make nodes, pod by pod.
const ReasonWaits = "WaitingForGang"

// Hide returns a handler that does the work of inner, but gives members of gangs that wait ReasonWaits. Pods in no gang
// stay Unschedulable. It needs feature gate SchedulerAsyncAPICalls: without it the scheduler writes conditions past its
// frameworks.
func Hide(inner kubescheduler.FailureHandlerFn) kubescheduler.FailureHandlerFn {
	return func(
		ctx context.Context,
		profile framework.Framework,
		pod *framework.QueuedPodInfo,
		status *fwk.Status,
		nominating *fwk.NominatingInfo,
		start time.Time,
	) {
		if inGang(profile, pod.Pod) {
			profile = quiet{profile}
		}
		inner(ctx, profile, pod, status, nominating, start)
	}
}

// inGang reports whether a pod is a member of a gang. A pod whose PodGroup is deleted counts as one.
func inGang(profile framework.Framework, pod *corev1.Pod) bool {
	key, grouped := snapshot.GroupOf(pod)
	if !grouped {
		return false
	}
	group, err := profile.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	return err != nil || group.Spec.SchedulingPolicy.Gang != nil
}

// quiet is a framework that does not say Unschedulable.
type quiet struct{ framework.Framework }

// APICacher returns the writer of pod statuses.
func (q quiet) APICacher() fwk.APICacher {
	if cacher := q.Framework.APICacher(); cacher != nil {
		return renaming{cacher}
	}
	return nil
}

type renaming struct{ fwk.APICacher }

// PatchPodStatus writes the conditions with ReasonWaits for Unschedulable.
func (r renaming) PatchPodStatus(
	pod *corev1.Pod, conditions []*corev1.PodCondition, nominating *fwk.NominatingInfo,
) (<-chan error, error) {
	for _, condition := range conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			condition.Reason = ReasonWaits
		}
	}
	done, err := r.APICacher.PatchPodStatus(pod, conditions, nominating)
	if err != nil {
		return nil, fmt.Errorf("writing that %s waits for its gang: %w", pod.Name, err)
	}
	return done, nil
}
