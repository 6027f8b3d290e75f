package gangpermit

import (
	"context"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// A binding that fails is tried again after firstPause, then after twice as long, up to longestPause and to a part of
// the gang's patience.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	pausesLeft   = 6
)

// Bind binds a member of a gang. If that fails it tries again as long as the gang makes progress within its patience:
// other members may be bound already, and a member that returns to the queue loses its node to the next entity. A
// binding that cannot succeed is given up at once. Pods that are in no gang are left to the profile's next binder.
func (p *GangPermit) Bind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return fwk.NewStatus(fwk.Skip)
	}
	p.clocks.Further(key, pod.UID, patience.Binding)
	limit, abandoned := p.patience(key, p.limits.Grace), p.abandoned(key)
	for pause := firstPause; ; pause = min(2*pause, longestPause, limit/pausesLeft) {
		if !p.there(key) {
			return rejected()
		}
		status := p.binder.Bind(ctx, state, pod, node)
		left := p.clocks.Left(key, limit)
		over := hopeless(status.AsError()) || left == 0 || ctx.Err() != nil
		if status.IsSuccess() || over && p.isOn(ctx, pod, node) {
			p.clocks.Further(key, pod.UID, patience.Bound)
			return nil
		}
		if over {
			return status
		}
		klog.FromContext(ctx).V(2).Info("Binding a member of a gang failed; it is tried again",
			"pod", klog.KObj(pod), "node", node, "err", status.AsError(), "pause", pause)
		select {
		case <-p.timing.Clock.After(min(spread(pause, pod), left)):
			// The others are evicted at this instant, and must not be by the side of one that is bound.
			if p.clocks.Left(key, limit) == 0 && !p.isOn(ctx, pod, node) {
				return status
			}
		case <-abandoned:
			return status
		case <-ctx.Done():
			return status
		}
	}
}

// spread lengthens a pause by up to its half, for each pod differently: the members of a gang that an API server
// refused at the same instant must not all be back at the same instant. It is not random, so that a scheduler that is
// played does the same each time.
func spread(pause time.Duration, pod *corev1.Pod) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.UID)) // it never fails
	return pause + pause*time.Duration(hash.Sum32()%parts)/(2*parts)
}

// parts is the number of different pauses.
const parts = 1000

// isOn reports whether the pod is on the node although its binding failed: the answer to an earlier try was lost, and
// the API server refuses the next one as a conflict. To give up such a pod would take its devices from it while it
// runs.
func (p *GangPermit) isOn(ctx context.Context, pod *corev1.Pod, node string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestPause)
	defer cancel()
	now, err := p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return err == nil && now.UID == pod.UID && now.Spec.NodeName == node
}

// there reports whether as many members as have to start together are on their nodes, or on their way. Others may have
// been deleted since this one was let go.
func (p *GangPermit) there(key types.NamespacedName) bool {
	group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return false
	}
	if group.Spec.SchedulingPolicy.Gang == nil {
		return true
	}
	state, err := p.handle.PodGroupManager().PodGroupStates().Get(key.Namespace, key.Name)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	there := state.ScheduledPodsCount()
	if evicted := p.gang(key).evicted; evicted.Len() > 0 {
		for _, pod := range state.ScheduledPods() {
			if evicted.Has(pod.UID) {
				there--
			}
		}
	}
	return there >= int(group.Spec.SchedulingPolicy.Gang.MinCount)
}

// hopeless reports whether the API server will give the same answer again: the pod is deleted, or another of its name
// exists, or it has a node.
func hopeless(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) ||
		apierrors.IsForbidden(err)
}

// abandon ends the tries of the gang's members: these, which are bound, are about to be evicted, and no others start
// with them.
func (p *GangPermit) abandon(key types.NamespacedName, evicted []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gang(key)
	for _, pod := range evicted {
		g.evicted.Insert(pod.UID)
	}
	close(g.abandoned)
	g.abandoned = make(chan struct{})
}

// spare says that members could not be evicted: they have their nodes, and count.
func (p *GangPermit) spare(key types.NamespacedName, stay []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gang(key)
	for _, pod := range stay {
		g.evicted.Delete(pod.UID)
	}
}

// abandoned is closed when the gang is abandoned next.
func (p *GangPermit) abandoned(key types.NamespacedName) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gang(key).abandoned
}
