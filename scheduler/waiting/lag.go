package waiting

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// mostDeparted is the number of remembered pods that left. More are forgotten: then the fleet changes so much that the
// next question follows soon anyway.
const mostDeparted = 100_000

// departed are pods that left, and their nodes, until the scheduler's snapshot shows it: the queue may learn of it long
// before the scheduler's own handler, which has more to do, and entities that are refused in between must be evaluated
// again. It is read after an evaluation, with the queue's lock held: it contains all pods that left before the
// evaluation, and a pod that leaves later has all entities evaluated again.
type departed map[types.UID]string

func (d departed) add(pod *corev1.Pod) {
	if len(d) >= mostDeparted {
		clear(d)
	}
	d[pod.UID] = pod.Spec.NodeName
}

// shown reports whether a view still has some of them. The others are forgotten.
func (d departed) shown(view snapshot.View) bool {
	maps.DeleteFunc(d, func(uid types.UID, node string) bool {
		at, ok := view.Tree.Index(node)
		return !ok || view.Infos[at] == nil ||
			!slices.ContainsFunc(view.Infos[at].GetPods(), func(pod fwk.PodInfo) bool {
				return pod.GetPod().UID == uid
			})
	})
	return len(d) > 0
}
