package gangpermit

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// A binding that fails is tried again after firstPause, then after twice as long, up to longestPause.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Bind binds a member of a gang, and tries again for the grace if that fails: the others may be bound already, and a
// member that goes back into the queue loses its node to whoever is next. What cannot succeed any more is given up at
// once. Pods that are in no gang are left to the profile's next binder.
func (p *GangPermit) Bind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if _, ok := snapshot.GroupOf(pod); !ok {
		return fwk.NewStatus(fwk.Skip)
	}
	over := p.clock.After(p.grace)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		status := p.binder.Bind(ctx, state, pod, node)
		if status.IsSuccess() || hopeless(status.AsError()) {
			return status
		}
		klog.FromContext(ctx).V(2).Info("Binding a member of a gang failed; it is tried again",
			"pod", klog.KObj(pod), "node", node, "err", status.AsError(), "pause", pause)
		select {
		case <-p.clock.After(pause):
		case <-over:
			return status
		case <-ctx.Done():
			return status
		}
	}
}

// hopeless reports whether the API server will give the same answer again: the pod is gone, or another of its name is
// there, or it has a node.
func hopeless(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) ||
		apierrors.IsForbidden(err)
}
