// Package whatiftest draws clusters for tests. A fleet is a picture: a line for each rack, a word for each of its
// nodes, a letter for each GPU. Small letters are gangs that run, with one member on each of their nodes; capitals are
// single pods; a dot is free. Node 2 of rack r1 is r1-2; of rack b1/r1, rack r1 in block b1, b1-r1-2.
//
//	r1: aa.. aaaa bb.. ....
//	r2: cccc S... ccdd ....
package whatiftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	namespace = "default"
	scheduler = "lockstep-scheduler"
	// rackKey is the label of a rack, blockKey of the block around it where a picture names one (b1/r1: ....).
	blockKey, rackKey = "example.com/block", "example.com/rack"

	gpu = corev1.ResourceName("nvidia.com/gpu")
	// perNode is the number of GPUs of a node.
	perNode = 4
)

// Now returns the time at which all scenes play.
func Now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// Profile is that of the scheduler in all scenes.
func Profile() whatif.Profile {
	return whatif.Profile{Scheduler: scheduler, Placement: config.GangPlacementArgs{
		Levels:       []config.Level{{Key: blockKey}, {Key: rackKey}},
		Accelerators: []string{string(gpu)},
	}}
}

// Fleet reads a picture.
func Fleet(picture string) (whatif.Objects, error) {
	o := whatif.Objects{Replaces: map[types.NamespacedName]bool{}}
	for line := range strings.Lines(picture) {
		path, nodes, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return o, fmt.Errorf("%q is no rack such as r1: aa.. bbbb", line)
		}
		block, rack, nested := strings.Cut(path, "/")
		prefix := strings.ReplaceAll(path, "/", "-")
		if !nested {
			block, rack = "b1", path
		}
		for i, slots := range strings.Fields(nodes) {
			name := fmt.Sprintf("%s-%d", prefix, i+1)
			o.Nodes = append(o.Nodes, node(name, map[string]string{
				corev1.LabelHostname: name, blockKey: block, rackKey: rack,
			}))
			if err := fill(&o, name, slots); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

func node(name string, labels map[string]string) *corev1.Node {
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), gpu: *resource.NewQuantity(perNode, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, ResourceVersion: "1"},
		Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

// fill puts onto a node the pods of its letters.
func fill(o *whatif.Objects, node, slots string) error {
	if len(slots) != perNode {
		return fmt.Errorf("node %s has %d slots, not %d: %s", node, len(slots), perNode, slots)
	}
	taken := make(map[rune]int)
	for _, letter := range slots {
		taken[letter]++
	}
	for letter, n := range taken {
		name := string(letter)
		if letter == '.' {
			continue
		}
		if unicode.IsUpper(letter) {
			p := pod(strings.ToLower(name), n)
			p.Spec.NodeName = node
			o.Pods = append(o.Pods, p)
			continue
		}
		if !slices.ContainsFunc(o.PodGroups, func(g *schedulingv1beta1.PodGroup) bool { return g.Name == name }) {
			o.PodGroups = append(o.PodGroups, group(name, 0))
		}
		p := member(o, name, n)
		p.Spec.NodeName = node
		o.Pods = append(o.Pods, p)
	}
	return nil
}

// group makes a PodGroup that waits since the beginning of time.
func group(name string, size int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(Now().Add(-time.Hour)),
			Annotations:       map[string]string{},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: size},
		}},
	}
}

// member makes the next member of a gang, which then has to be whole with it.
func member(o *whatif.Objects, gang string, gpus int) *corev1.Pod {
	g := Group(*o, gang)
	rank := g.Spec.SchedulingPolicy.Gang.MinCount
	g.Spec.SchedulingPolicy.Gang.MinCount++
	p := pod(fmt.Sprintf("%s-%d", gang, rank), gpus)
	p.Labels["batch.kubernetes.io/job-completion-index"] = strconv.Itoa(int(rank))
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &gang}
	return p
}

func pod(name string, gpus int) *corev1.Pod {
	asks := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if gpus > 0 {
		asks[gpu] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{},
			CreationTimestamp: metav1.NewTime(Now().Add(-time.Hour)), ResourceVersion: "1",
		},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			Containers: []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}},
			},
		},
	}
}

// Group is the PodGroup of that name, nil if there is none.
func Group(o whatif.Objects, name string) *schedulingv1beta1.PodGroup {
	for _, g := range o.PodGroups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// members are the pods of a gang, or the single pod of that name.
func members(o whatif.Objects, name string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, p := range o.Pods {
		if g := p.Spec.SchedulingGroup; g != nil && *g.PodGroupName == name || g == nil && p.Name == name {
			pods = append(pods, p)
		}
	}
	return pods
}

// Wait is a gang that waits.
type Wait struct {
	Name          string
	Workers, GPUs int
	// Queued is the number of minutes since its creation.
	Queued int
}

// Add creates a gang, or more members of an existing one, and returns it with the new members.
func Add(o *whatif.Objects, w Wait) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	g := Group(*o, w.Name)
	if g == nil {
		g = group(w.Name, 0)
		g.CreationTimestamp = metav1.NewTime(Now().Add(-time.Duration(w.Queued) * time.Minute))
		o.PodGroups = append(o.PodGroups, g)
	}
	var pods []*corev1.Pod
	for range w.Workers {
		p := member(o, w.Name, w.GPUs)
		p.CreationTimestamp = g.CreationTimestamp
		pods = append(pods, p)
	}
	o.Pods = slices.Concat(o.Pods, pods)
	return g, pods
}

// protected is a PriorityClass that an administrator marked as not to be preempted.
func protected() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{
		Name: "protected", Annotations: map[string]string{topology.AnnotationPreemptible: "false"},
	}}
}

// budget protects a gang: that many of its pods may be disrupted.
func budget(gang string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keep-" + gang},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": gang}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}
