package gangplacement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// mostLeaving is how many pods are remembered that left. More are forgotten: then the fleet changes so much that somebody
// asks again soon anyway.
const mostLeaving = 100_000

// podLeft remembers a pod that gave its room back, until the scheduler's snapshot shows it: our handler may be told long
// before the scheduler's, which has more to do, and a gang that is refused in between must be asked again.
func (p *GangPlacement) podLeft(obj any) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if len(p.memory.leaving) >= mostLeaving {
		clear(p.memory.leaving)
	}
	p.memory.leaving[pod.UID] = pod.Spec.NodeName
}

// lags reports whether the snapshot still has pods of which we know that they left, or nodes that we know otherwise.
func (m *memory) lags(view snapshot.View) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.leaving, func(uid types.UID, node string) bool {
		at, ok := view.Tree.Index(node)
		return !ok || !slices.ContainsFunc(view.Infos[at].GetPods(), func(pod fwk.PodInfo) bool {
			return pod.GetPod().UID == uid
		})
	})
	maps.DeleteFunc(m.changed, func(node, version string) bool {
		at, ok := view.Tree.Index(node)
		return ok && view.Infos[at].Node().ResourceVersion == version
	})
	return len(m.leaving)+len(m.changed) > 0
}
