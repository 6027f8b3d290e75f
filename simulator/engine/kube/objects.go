package kube

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/scene"
	"github.com/lockstep-project/lockstep/topology"
)

// namespace is where jobs of a trace are.
const namespace = "default"

// usualPods is how many pods a node takes that does not say, as scenes count.
const usualPods = 110

// nodeOf is a node of the scene as schedulers see it: also who looks at single labels finds what the tree is made of.
func nodeOf(s *scene.Scene, at int, discovered map[string]bool) *corev1.Node {
	node := s.Nodes[at].DeepCopy()
	labels := topology.WithClique(topology.Node{Name: node.Name, Labels: node.Labels}, discovered).Labels
	node.Labels = maps.Clone(labels)
	if node.Labels == nil {
		node.Labels = make(map[string]string, 1)
	}
	if node.Labels[corev1.LabelHostname] == "" {
		node.Labels[corev1.LabelHostname] = node.Name
	}
	if node.UID == "" {
		node.UID = types.UID(node.Name)
	}
	node.Spec.Unschedulable = node.Spec.Unschedulable || s.Closed[at]
	for _, list := range []*corev1.ResourceList{&node.Status.Capacity, &node.Status.Allocatable} {
		if *list == nil {
			*list = make(corev1.ResourceList, 1)
		}
		if _, ok := (*list)[corev1.ResourcePods]; !ok {
			(*list)[corev1.ResourcePods] = *resource.NewQuantity(usualPods, resource.DecimalSI)
		}
	}
	return node
}

// objects is what the controller makes of a job: its PodGroup, and its pods in rank order.
func (w *world) objects(i int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	of, state := &w.scene.Jobs[i], &w.jobs[i]
	now := metav1.NewTime(w.clock.Now())
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name + "#" + strconv.Itoa(state.times)),
			CreationTimestamp: now, ResourceVersion: w.version(),
		}
	}
	priority := of.Priority
	group := &schedulingv1beta1.PodGroup{ObjectMeta: meta(of.ID)}
	group.Annotations = wishes(of.Gang)
	group.Annotations[topology.AnnotationQueuedAt] = w.instant(of.Submit)
	group.Spec = schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(of.Needed)},
		},
		Priority: &priority,
	}
	if key := w.keyOf(of.Gang.Required); key != "" {
		group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}},
		}
	}
	pods := make([]*corev1.Pod, len(of.Gang.Members))
	for rank, member := range of.Gang.Members {
		requests := w.requests(of.Gang.Shapes[member.Shape].Demand)
		pod := &corev1.Pod{ObjectMeta: meta(cmp.Or(member.Name, scene.PodName(of.ID, rank)))}
		pod.Labels = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(rank)}
		pod.Spec = corev1.PodSpec{
			SchedulerName: w.parts.name, Priority: &priority, RestartPolicy: corev1.RestartPolicyNever,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group.Name},
			Tolerations:     w.tolerations,
			Containers: []corev1.Container{{
				Name: "node", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
			}},
		}
		pod.Status.Phase = corev1.PodPending
		pods[rank] = pod
	}
	return group, pods
}

// wishes are a gang's rules as annotations.
func wishes(g topology.Gang) map[string]string {
	out := make(map[string]string)
	text := func(key, value string) {
		if value != "" {
			out[key] = value
		}
	}
	number := func(key string, value int) {
		if value > 0 {
			out[key] = strconv.Itoa(value)
		}
	}
	text(topology.AnnotationRequiredTopology, g.Required)
	text(topology.AnnotationPreferredTopology, g.Preferred)
	number(topology.AnnotationSegmentSize, g.Segment.Size)
	text(topology.AnnotationSegmentTopology, g.Segment.Level)
	if g.Segment.Equal {
		out[topology.AnnotationSegmentEqual] = "true"
	}
	number(topology.AnnotationSpreadMax, g.Spread.Max)
	text(topology.AnnotationSpreadTopology, g.Spread.Level)
	number(topology.AnnotationSpares, g.Spares.Nodes)
	number(topology.AnnotationMaxPerNode, g.PerNode)
	return out
}

// keyOf is the label by which domains of a level are known; "" for no level.
func (w *world) keyOf(level string) string {
	if level == topology.LevelNode {
		return corev1.LabelHostname
	}
	for _, l := range w.scene.Ledger.Tree.Levels() {
		if l.Name == level {
			return l.Key
		}
	}
	return ""
}

// requests is a demand as a container says it. Members of one shape share the list.
func (w *world) requests(demand topology.Capacity) corev1.ResourceList {
	key := fmt.Sprint(demand)
	if list, ok := w.asked[key]; ok {
		return list
	}
	list := make(corev1.ResourceList, len(demand))
	for i, name := range w.scene.Resources {
		switch {
		case demand[i] == 0 || name == corev1.ResourcePods:
		case name == corev1.ResourceCPU:
			list[name] = *resource.NewMilliQuantity(demand[i], resource.DecimalSI)
		case name == corev1.ResourceMemory:
			list[name] = *resource.NewQuantity(demand[i], resource.BinarySI)
		default:
			list[name] = *resource.NewQuantity(demand[i], resource.DecimalSI)
		}
	}
	w.asked[key] = list
	return list
}

// instant is an instant of the scene as annotations say it.
func (w *world) instant(at time.Duration) string {
	return w.scene.Begin.Add(at).UTC().Format(time.RFC3339)
}
