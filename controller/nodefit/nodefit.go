// Package nodefit finds pods that no node can hold before they are made: neither a node of the cluster, if it were
// empty, nor one of a shape that node autoscalers can make. It compares resources, and leaves node selection, topology
// and claims to the scheduler.
package nodefit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/fleet"
)

// Nodes lists the nodes that pods can run on: those of the cluster, and shapes of others.
type Nodes struct {
	// Cache lists the cached part of nodes (see Keep). Nil finds nothing.
	Cache client.Reader
	// Live lists device classes.
	Live client.Reader
	// Shapes are the resources of nodes that autoscalers can make.
	Shapes []corev1.ResourceList
	// Complete is set if there will never be other nodes. Gangs that none of them holds get no pods.
	Complete bool
}

// Keep is a transform of the cache that retains the resources of a node, and other objects whole. Extended resources
// that are broken now count. Of a node with GPUs it also retains the fields that package fleet reads: allocatable GPUs,
// labels and taints.
func Keep(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	has := overlay(node.Status.Capacity, nil)
	for name, quantity := range node.Status.Allocatable {
		if !extended(name) {
			has[name] = quantity
		}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: fleet.Labels(node),
		},
		Spec:   fleet.Spec(node),
		Status: corev1.NodeStatus{Capacity: has, Allocatable: fleet.GPUs(node)},
	}, nil
}

// Unfit returns the reasons for which no node holds pods of a JobSet, a sentence each, in a fixed order: no node has a
// resource, or as much of it as one pod asks for, or has several together. Checks that cannot be made are left out.
func (n Nodes) Unfit(ctx context.Context, jobSet *jobsetv1alpha2.JobSet) []string {
	if n.Cache == nil {
		return nil
	}
	pods := requests(jobSet)
	if len(pods) == 0 {
		return nil
	}
	var list corev1.NodeList
	if err := n.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		klog.FromContext(ctx).Error(err, "Listing nodes to compare pods with")
		return nil
	}
	nodes := slices.Clone(n.Shapes)
	for i := range list.Items {
		nodes = append(nodes, list.Items[i].Status.Capacity)
	}
	unheld := slices.DeleteFunc(pods, func(pod podRequest) bool { return anyHolds(nodes, pod.asks) })
	if len(nodes) == 0 || len(unheld) == 0 {
		return nil
	}
	devices, err := n.devices(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing DeviceClasses to compare pods with")
		return nil
	}
	for _, pod := range unheld {
		maps.DeleteFunc(pod.asks, func(name corev1.ResourceName, _ resource.Quantity) bool { return devices[name] })
	}
	unheld = slices.DeleteFunc(unheld, func(pod podRequest) bool { return anyHolds(nodes, pod.asks) })
	return n.sentences(nodes, unheld)
}

// sentences returns the reasons why no node holds pods.
func (n Nodes) sentences(nodes []corev1.ResourceList, pods []podRequest) []string {
	where := "no node of this cluster"
	if len(n.Shapes) > 0 {
		where += ", and none that can be added,"
	}
	missing, most := corev1.ResourceList{}, mostOf(nodes)
	var together []string
	for _, pod := range pods {
		alone := false
		for name, want := range pod.asks {
			if holds(most, corev1.ResourceList{name: want}) {
				continue
			}
			alone = true
			if before := missing[name]; want.Cmp(before) > 0 {
				missing[name] = want
			}
		}
		if !alone {
			together = append(together,
				fmt.Sprintf("a pod of %s asks for %s, and %s has all of it", pod.of, describe(pod.asks), where))
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		want, offered := missing[name], most[name]
		if offered.IsZero() {
			out = append(out, fmt.Sprintf("%s: %s offers it", name, where))
			continue
		}
		out = append(
			out,
			fmt.Sprintf("%s: a pod asks for %s, and %s has more than %s", name, want.String(), where, offered.String()),
		)
	}
	return append(out, together...)
}

// devices are the extended resources that are devices of a class.
func (n Nodes) devices(ctx context.Context) (map[corev1.ResourceName]bool, error) {
	var classes resourcev1.DeviceClassList
	if err := n.Live.List(ctx, &classes); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing DeviceClasses: %w", err)
	}
	found := map[corev1.ResourceName]bool{}
	for i := range classes.Items {
		if name := classes.Items[i].Spec.ExtendedResourceName; name != nil {
			found[corev1.ResourceName(*name)] = true
		}
	}
	return found, nil
}

// podRequest has the resources that each pod of a replicated job asks for.
type podRequest struct {
	of   string
	asks corev1.ResourceList
}

// requests returns the resource requests of the pods of a JobSet. Resources with the prefix of DeviceClasses need no
// node that offers them.
func requests(jobSet *jobsetv1alpha2.JobSet) []podRequest {
	var out []podRequest
	for i := range jobSet.Spec.ReplicatedJobs {
		job := &jobSet.Spec.ReplicatedJobs[i]
		pod := &corev1.Pod{Spec: *job.Template.Spec.Template.Spec.DeepCopy()}
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for j := range containers {
				limited := &containers[j].Resources
				limited.Requests = overlay(limited.Limits, limited.Requests) // as the API server completes them
			}
		}
		asks := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		maps.DeleteFunc(asks, func(name corev1.ResourceName, quantity resource.Quantity) bool {
			return quantity.IsZero() || strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
		})
		if len(asks) > 0 {
			out = append(out, podRequest{job.Name, asks})
		}
	}
	return out
}

func anyHolds(nodes []corev1.ResourceList, asks corev1.ResourceList) bool {
	return slices.ContainsFunc(nodes, func(has corev1.ResourceList) bool { return holds(has, asks) })
}

// holds reports whether an empty node holds a pod. A resource that is not extended, and that the node does not list,
// counts as available.
func holds(has, asks corev1.ResourceList) bool {
	for name, want := range asks {
		offered, said := has[name]
		if (said || extended(name)) && want.Cmp(offered) > 0 {
			return false
		}
	}
	return true
}

// mostOf returns the most that one node has of each resource.
func mostOf(nodes []corev1.ResourceList) corev1.ResourceList {
	most := corev1.ResourceList{}
	for _, has := range nodes {
		for name, quantity := range has {
			if before := most[name]; quantity.Cmp(before) > 0 {
				most[name] = quantity
			}
		}
	}
	return most
}

// extended reports whether only some nodes have a resource.
func extended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

func describe(asks corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(asks), cmp.Compare[corev1.ResourceName]) {
		quantity := asks[name]
		parts = append(parts, quantity.String()+" "+string(name))
	}
	return strings.Join(parts, ", ")
}

// overlay returns the quantities of both lists, those of above where both have one.
func overlay(below, above corev1.ResourceList) corev1.ResourceList {
	both := maps.Clone(below)
	if both == nil {
		both = corev1.ResourceList{}
	}
	maps.Copy(both, above)
	return both
}
