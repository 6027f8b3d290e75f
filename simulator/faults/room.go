package faults

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// gang is a PodGroup with its pods that have not ended.
type gang struct {
	group *schedulingv1beta1.PodGroup
	need  int
	// bound are on nodes and stay, waiting have none.
	bound, waiting []*corev1.Pod
}

func (w *world) gangs() []gang {
	var out []gang
	at := make(map[types.NamespacedName]int)
	for _, o := range w.server.List("PodGroup", "") {
		group, ok := o.(*schedulingv1beta1.PodGroup)
		if !ok || group.Spec.SchedulingPolicy.Gang == nil {
			continue
		}
		at[client.ObjectKeyFromObject(group)] = len(out)
		out = append(out, gang{group: group, need: int(group.Spec.SchedulingPolicy.Gang.MinCount)})
	}
	for _, o := range w.server.List("Pod", "") {
		pod, ok := o.(*corev1.Pod)
		key, grouped := snapshot.GroupOf(pod)
		i, known := at[key]
		if !ok || !grouped || !known || hasEnded(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Spec.NodeName != "" {
			out[i].bound = append(out[i].bound, pod)
		} else {
			out[i].waiting = append(out[i].waiting, pod)
		}
	}
	return out
}

func (w *world) jobOf(g gang) *Job {
	for i := range w.scene.Jobs {
		if w.scene.Jobs[i].Name == g.group.Name {
			return &w.scene.Jobs[i]
		}
	}
	return nil
}

// unconnected returns the nodes that are in no ComputeDomain, and without pods with a channel.
func (w *world) unconnected() map[string]bool {
	open := make(map[string]bool)
	for _, o := range w.server.List("Node", "") {
		open[o.GetName()] = o.GetLabels()[nvlink.DomainLabel] == ""
	}
	for _, o := range w.server.List("Pod", "") {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !hasEnded(pod) && fakecluster.Connects(pod) {
			delete(open, pod.Spec.NodeName)
		}
	}
	return open
}

// unused returns the number of free GPUs of each open node.
func (w *world) unused() map[string]int {
	free := make(map[string]int)
	for _, o := range w.server.List("Node", "") {
		node, ok := o.(*corev1.Node)
		if ok && !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 {
			free[node.Name] = w.scene.GPUs
		}
	}
	for _, o := range w.server.List("Pod", "") {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !hasEnded(pod) {
			free[pod.Spec.NodeName] -= gpusOf(pod)
		}
	}
	return free
}

// freeFor returns unused without the nodes that are leased to others. Open leases do not count.
func (w *world) freeFor(gang types.NamespacedName) map[string]int {
	free := w.unused()
	if w.leader == nil {
		return free
	}
	for _, l := range w.leader.waiting.Leases() {
		if l.Owner == gang || l.Lease.Open {
			continue
		}
		for node := range l.Room {
			delete(free, node)
		}
	}
	return free
}

// fits reports whether a job fits on the free GPUs.
func (w *world) fits(j Job, free map[string]int) bool {
	room, open := make(map[string]int), w.unconnected()
	for at := range w.scene.Racks * w.scene.PerRack {
		rack := ""
		if j.Rack {
			rack = strconv.Itoa(at / w.scene.PerRack)
		}
		node := w.scene.nodeName(at)
		ranks := max(free[node], 0) / j.GPUs
		if w.scene.connects(j) {
			ranks = min(ranks, 1)
			if !open[node] {
				ranks = 0
			}
		}
		room[rack] += ranks
	}
	for _, n := range room {
		if n >= j.Nodes {
			return true
		}
	}
	return false
}
