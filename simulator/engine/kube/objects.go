package kube

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// usualPods is the number of pods that a node takes that states none, as scenarios count.
const usualPods = 110

// nodeOf returns a node of the scenario as schedulers see it. It carries each label that the tree is built of, for
// schedulers that look at single labels.
func (w *world) nodeOf(at int, discovered map[string]bool) *corev1.Node {
	node := w.given.Nodes[at].DeepCopy()
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
	node.Spec.Unschedulable = node.Spec.Unschedulable || w.scene.Closed[at]
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

// groupOf returns the name of a job's PodGroup: its own if the job is of a snapshot.
func (w *world) groupOf(i int) types.NamespacedName {
	if group := w.jobs[i].given.Group; group != nil {
		return stepped.NameOf(group)
	}
	return types.NamespacedName{Namespace: scenario.Namespace, Name: w.scene.Jobs[i].ID}
}

// podOf returns the name of the pod of a rank: its own if the job is of a snapshot.
func (w *world) podOf(i, rank int) types.NamespacedName {
	if pods := w.jobs[i].given.Pods; rank < len(pods) {
		return stepped.NameOf(pods[rank])
	}
	of := &w.scene.Jobs[i]
	return types.NamespacedName{
		Namespace: w.groupOf(i).Namespace, Name: cmp.Or(of.Gang.Members[rank].Name, scenario.PodName(of.ID, rank)),
	}
}

// objects returns the controller's objects of a job: its PodGroup, nil for a pod in none, and its pods in rank order.
func (w *world) objects(i int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	of := &w.scene.Jobs[i]
	group := w.groupFor(i)
	pods := make([]*corev1.Pod, len(of.Gang.Members))
	for rank := range pods {
		pods[rank] = w.podFor(i, rank, group)
	}
	return group, pods
}

// meta returns the metadata of an object of a job that is created now. An object that is created again has another UID.
func (w *world) meta(i int, name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name,
		UID:               types.UID(name.String() + "#" + strconv.Itoa(w.jobs[i].times)),
		CreationTimestamp: metav1.NewTime(w.clock.Now()), ResourceVersion: w.version(),
	}
}

func (w *world) groupFor(i int) *schedulingv1beta1.PodGroup {
	of, given := &w.scene.Jobs[i], w.jobs[i].given
	if given.Group == nil && given.Pods != nil {
		return nil
	}
	group := &schedulingv1beta1.PodGroup{}
	if given.Group != nil { // a snapshot's group carries its own request
		group.Spec, group.Annotations = *given.Group.Spec.DeepCopy(), maps.Clone(given.Group.Annotations)
		group.Labels = maps.Clone(given.Group.Labels)
		delete(group.Annotations, topology.AnnotationLateMembers) // they are created with the others
	} else {
		group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{}
		group.Annotations = wishes(of.Gang)
		if _, name, ok := strings.Cut(of.Sweep.Name, "/"); ok {
			group.Labels = map[string]string{topology.LabelSweep: name}
			group.Annotations[topology.AnnotationSweepParallelism] = strconv.Itoa(of.Sweep.Limit)
		}
		if key := w.keyOf(of.Gang.Required); key != "" {
			group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
				Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}},
			}
		}
	}
	if group.Annotations == nil {
		group.Annotations = make(map[string]string, 1)
	}
	labels, annotations := group.Labels, group.Annotations
	group.ObjectMeta = w.meta(i, w.groupOf(i))
	group.Labels, group.Annotations = labels, annotations
	annotations[topology.AnnotationQueuedAt] = w.instant(w.jobs[i].queuedAt)
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		gang.MinCount = int32(w.least(i)) // no gang has so many members
	}
	priority := of.Priority
	group.Spec.Priority = &priority
	return group
}

func (w *world) podFor(i, rank int, group *schedulingv1beta1.PodGroup) *corev1.Pod {
	of := &w.scene.Jobs[i]
	pod := &corev1.Pod{}
	if pods := w.jobs[i].given.Pods; rank < len(pods) {
		pod.Spec, pod.Labels = *pods[rank].Spec.DeepCopy(), maps.Clone(pods[rank].Labels)
	} else {
		requests := w.requests(of.Gang.Shapes[of.Gang.Members[rank].Shape].Demand)
		pod.Spec.RestartPolicy, pod.Spec.Tolerations = corev1.RestartPolicyNever, w.tolerations
		pod.Spec.Containers = []corev1.Container{{
			Name: "node", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
		}}
		pod.Labels = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(rank)}
	}
	labels := pod.Labels
	pod.ObjectMeta = w.meta(i, w.podOf(i, rank))
	pod.Labels = labels
	pod.Spec.SchedulerName, pod.Status.Phase = w.parts.name, corev1.PodPending
	leaveAtOnce(pod)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(of.Grace / time.Second))
	if of.Preemptible {
		pod.Spec.PriorityClassName = ""
	}
	if of.NeverPreempts {
		pod.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	}
	if group == nil { // its age is its place in the queue
		pod.CreationTimestamp = metav1.NewTime(w.scene.Begin.Add(w.jobs[i].queuedAt))
		return pod
	}
	pod.Spec.Priority = group.Spec.Priority
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
	return pod
}

// protected is the PriorityClass of pods that must not be preempted.
const protected = "not-preemptible"

// protectedClass returns the PriorityClass of pods that must not be preempted.
func protectedClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{
		Name: protected, Annotations: map[string]string{topology.AnnotationPreemptible: "false"},
	}}
}

// leaveAtOnce gives a pod no time to leave its node once it has to. It may not be preempted.
func leaveAtOnce(pod *corev1.Pod) {
	pod.Spec.TerminationGracePeriodSeconds, pod.Spec.PriorityClassName = new(int64), protected
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
	if g.Box != (grid.Size{}) {
		out[topology.AnnotationTorusBox] = g.Box.String()
	}
	return out
}

// keyOf is the label by which domains of a level are known; "" for no level.
func (w *world) keyOf(level string) string {
	levels := w.scene.Ledger.Tree.Levels()
	at, ok := w.scene.Ledger.Tree.Level(level)
	switch {
	case !ok:
		return ""
	case at == len(levels):
		return corev1.LabelHostname
	}
	return levels[at].Key
}

// requests is a demand as a container says it. Members of one shape share the list.
func (w *world) requests(demand topology.Capacity) corev1.ResourceList {
	key := fmt.Sprint(demand)
	if list, ok := w.asked[key]; ok {
		return list
	}
	list := make(corev1.ResourceList, len(demand))
	for i, resourceName := range w.scene.Resources {
		name := corev1.ResourceName(resourceName)
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

// instant is an instant of the scenario as annotations say it.
func (w *world) instant(at time.Duration) string {
	return w.scene.Begin.Add(at).UTC().Format(time.RFC3339)
}
