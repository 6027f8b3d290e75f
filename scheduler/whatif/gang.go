package whatif

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// gang is a PodGroup and its pods, each slice in rank order.
type gang struct {
	group *schedulingv1beta1.PodGroup
	key   types.NamespacedName
	order contention.Order
	// waiting have no node, running have one; leaving are being deleted, and do not count.
	waiting, running, leaving []*corev1.Pod
}

// gangs are all gangs by name; pods in PodGroups that are none are no gang's.
func (o Objects) gangs() map[types.NamespacedName]*gang {
	all := make(map[types.NamespacedName]*gang, len(o.PodGroups))
	for _, group := range o.PodGroups {
		if group.Spec.SchedulingPolicy.Gang != nil {
			g := newGang(group)
			all[g.key] = g
		}
	}
	for _, pod := range o.Pods {
		key, _ := snapshot.GroupOf(pod)
		g := all[key]
		switch {
		case g == nil:
		case pod.DeletionTimestamp != nil:
			g.leaving = append(g.leaving, pod)
		case pod.Spec.NodeName != "":
			g.running = append(g.running, pod)
		default:
			g.waiting = append(g.waiting, pod)
		}
	}
	for _, g := range all {
		g.waiting, g.running = snapshot.InRankOrder(g.waiting), snapshot.InRankOrder(g.running)
		g.leaving = snapshot.InRankOrder(g.leaving)
	}
	return all
}

// over returns the PodGroups whose pods have all ended.
func (o Objects) over() map[types.NamespacedName]bool {
	over := make(map[types.NamespacedName]bool)
	for _, pod := range o.Pods {
		key, grouped := snapshot.GroupOf(pod)
		if before, seen := over[key]; grouped {
			over[key] = snapshot.Ended(pod) && (before || !seen)
		}
	}
	return over
}

func newGang(group *schedulingv1beta1.PodGroup) *gang {
	return &gang{
		group: group, key: types.NamespacedName{Namespace: group.Namespace, Name: group.Name},
		order: snapshot.OrderOf(group, ptr.Deref(group.Spec.Priority, 0)),
	}
}

// id is that of the gang in the queue.
func (g *gang) id() contention.ID { return waiting.IDOf(g.key) }

// minCount returns the number of members that have to start together, late ones not counted.
func (g *gang) minCount() int { return int(g.group.Spec.SchedulingPolicy.Gang.MinCount) }

// needed returns the number of the waiting members that have to be placed together.
func (g *gang) needed() int { return g.minCount() - len(g.running) }

// complete reports whether the queue lets the gang in: all needed members are there, and nothing gates one.
func (g *gang) complete() bool {
	return len(g.waiting) > 0 && len(g.waiting) >= g.needed() && !slices.ContainsFunc(g.waiting, gated)
}

func gated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

// scheduler is the schedulerName of its pods, "" if it has none.
func (g *gang) scheduler() string {
	for _, pods := range [][]*corev1.Pod{g.waiting, g.running, g.leaving} {
		if len(pods) > 0 {
			return cmp.Or(pods[0].Spec.SchedulerName, corev1.DefaultSchedulerName)
		}
	}
	return ""
}

// told returns the scheduler's forecast for the start of a waiting gang.
func (g *gang) told() standing.Start {
	waits := apimeta.FindStatusCondition(g.group.Status.Conditions, standing.Waiting)
	if waits == nil || waits.Status != metav1.ConditionTrue {
		return standing.Start{}
	}
	start, _ := standing.StartIn(waits.Message)
	return start
}

// restarted returns the gang as of a restart of all its members. Late ones are created when the others run.
func (g *gang) restarted(now time.Time) *gang {
	again := newGang(g.group)
	for _, pod := range withoutLate(g.group, slices.Concat(g.running, g.waiting)) {
		again.waiting = append(again.waiting, unbound(pod, now))
	}
	again.waiting = snapshot.InRankOrder(again.waiting)
	return again
}

// bereft returns the gang when these of its members are replaced.
func (g *gang) bereft(lost []*corev1.Pod, now time.Time) *gang {
	again := newGang(g.group)
	again.waiting = slices.Clone(g.waiting)
	for _, pod := range g.running {
		if slices.Contains(lost, pod) {
			again.waiting = append(again.waiting, unbound(pod, now))
		} else {
			again.running = append(again.running, pod)
		}
	}
	again.waiting = snapshot.InRankOrder(again.waiting)
	return again
}

// unbound returns the pod as its controller creates it again. Its claims are created again, too, from the same
// templates: that they have their old names here makes no difference.
func unbound(pod *corev1.Pod, now time.Time) *corev1.Pod {
	again := *pod
	again.CreationTimestamp = metav1.NewTime(now)
	again.Spec.NodeName, again.DeletionTimestamp = "", nil
	again.Status = corev1.PodStatus{ResourceClaimStatuses: pod.Status.ResourceClaimStatuses}
	return &again
}

// bound returns the pod on a node, where it starts at that instant.
func bound(pod *corev1.Pod, node string, now time.Time) *corev1.Pod {
	there := *pod
	there.Spec.NodeName = node
	there.Status.StartTime = new(metav1.NewTime(now))
	return &there
}

// withoutLate leaves out the pods that the group announces as late members.
func withoutLate(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) []*corev1.Pod {
	var announced []corev1.PodTemplateSpec
	// An annotation that cannot be read announces none; the verdict about the gang says so.
	if json.Unmarshal([]byte(group.Annotations[topology.AnnotationLateMembers]), &announced) != nil {
		return pods
	}
	for _, template := range announced {
		late := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return carries(pod, template.Labels) })
		if late >= 0 {
			pods = slices.Delete(pods, late, late+1)
		}
	}
	return pods
}

func carries(pod *corev1.Pod, labels map[string]string) bool {
	for key, value := range labels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return true
}
