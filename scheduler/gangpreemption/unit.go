package gangpreemption

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/topology"
)

// unit is what leaves together: a whole gang, or a pod that is in none.
type unit struct {
	// name is namespace/name of the PodGroup, or of the pod with a slash after it.
	name string
	// group is nil for a single pod.
	group *schedulingv1beta1.PodGroup
	// pods are those with nodes, by node and name.
	pods  []*corev1.Pod
	holds []topology.Held
}

// gather finds who could make room for the gang: everything with a node that has a strictly lower priority. Of a gang all members
// leave or none, whatever its disruptionMode says: a training that lost one rank has lost all.
func gather(asked unplaced.Gang, groups fwk.PodGroupLister) []unit {
	mine, _ := snapshot.GroupOf(asked.Waiting[0])
	priority := corev1helpers.PodPriority(asked.Waiting[0])
	var units []unit
	at := map[string]int{} // -1 is one that must stay
	for node, info := range asked.View.Infos {
		if info == nil {
			continue
		}
		for _, pod := range podsOf(info) {
			if group, ok := snapshot.GroupOf(pod); ok && group == mine || snapshot.Ended(pod) || returns(pod) {
				continue
			}
			u, important := unitOf(pod, groups)
			i, seen := at[u.name]
			if !seen {
				i = -1
				if important < priority {
					i, units = len(units), append(units, u)
				}
				at[u.name] = i
			}
			if i < 0 {
				continue
			}
			units[i].pods = append(units[i].pods, pod)
			units[i].holds = append(units[i].holds, topology.Held{Node: node, Demand: asked.View.Demand(pod)})
		}
	}
	// The core breaks ties by index.
	slices.SortFunc(units, func(a, b unit) int { return strings.Compare(a.name, b.name) })
	return units
}

// returns reports whether a pod that is ended comes back to the same node at once: that of a DaemonSet, or one that its kubelet
// has from a file. Its departure makes no room.
func returns(pod *corev1.Pod) bool {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// podsOf are a node's pods by name: the snapshot has them in the order in which they came.
func podsOf(info fwk.NodeInfo) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(info.GetPods()))
	for _, pod := range info.GetPods() {
		pods = append(pods, pod.GetPod())
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return pods
}

// unitOf is the unit that a pod leaves with, empty yet, and its priority. A group that is no gang, or gone, holds nothing together.
func unitOf(pod *corev1.Pod, groups fwk.PodGroupLister) (unit, int32) {
	if key, ok := snapshot.GroupOf(pod); ok {
		group, err := groups.Get(key.Namespace, key.Name)
		if err == nil && group.Spec.SchedulingPolicy.Gang != nil {
			return unit{name: key.String(), group: group}, ptr.Deref(group.Spec.Priority, 0)
		}
	}
	return unit{name: pod.Namespace + "/" + pod.Name + "/"}, corev1helpers.PodPriority(pod)
}

// leaving reports whether all of the unit is on its way out: that costs nothing more.
func (u unit) leaving() bool {
	return !slices.ContainsFunc(u.pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil })
}

// accelerators is how many the unit holds.
func (u unit) accelerators(kinds []corev1.ResourceName) int64 {
	return accelerators(u.pods, kinds)
}

func accelerators(pods []*corev1.Pod, kinds []corev1.ResourceName) int64 {
	var sum int64
	for _, pod := range pods {
		asks := snapshot.Requests(pod)
		for _, kind := range kinds {
			if quantity, ok := asks[kind]; ok {
				sum += quantity.Value()
			}
		}
	}
	return sum
}

// lost is the work that leaves with the unit, in accelerator-seconds: since its trainer last saved it, or since it started.
func (u unit) lost(kinds []corev1.ResourceName, now time.Time) int64 {
	if u.leaving() {
		return 0
	}
	since := u.started()
	if saved := u.saved(); saved.After(since) {
		since = saved
	}
	return u.accelerators(kinds) * int64(max(0, now.Sub(since))/time.Second)
}

// started is when the first of its pods started.
func (u unit) started() time.Time {
	first := time.Time{}
	for _, pod := range u.pods {
		at := pod.CreationTimestamp.Time
		if pod.Status.StartTime != nil {
			at = pod.Status.StartTime.Time
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// saved is when its trainer last saved its work, as the controller wrote it on the PodGroup; zero if nobody knows.
func (u unit) saved() time.Time {
	if u.group == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, u.group.Annotations[topology.AnnotationLastCheckpoint])
	if err != nil {
		return time.Time{}
	}
	return at
}
