package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// cluster is the objects while the queue is played: the pods of gangs that are placed are put on nodes, those of
// victims are taken off.
type cluster struct {
	*WhatIf
	gangs  map[types.NamespacedName]*gang
	groups groupLister
	nodes  []fwk.NodeInfo // by name
	infos  map[string]*framework.NodeInfo
	// resources are all that any pod requests.
	resources []corev1.ResourceName
	indices   *snapshot.Indices
	// consumers are the pods that have not ended, and the PodGroups: what may use claims.
	consumers map[types.UID]bool
	// fixed are the devices, stock is their known state.
	fixed *devices.Fixed
	stock *devices.Stock
}

// newCluster returns the objects at the instant.
func (w *WhatIf) newCluster() (*cluster, error) {
	c := &cluster{
		WhatIf: w, gangs: w.objects.gangs(), groups: make(groupLister, len(w.objects.PodGroups)),
		infos:   make(map[string]*framework.NodeInfo, len(w.objects.Nodes)),
		indices: snapshot.NewIndices(w.levels, w.profile.Placement.Health()), consumers: make(map[types.UID]bool),
		fixed: devices.NewFixed(w.objects.Devices.Slices, w.objects.Devices.Classes, w.objects.Devices.Claims),
	}
	c.stock = new(devices.Shared).Stock(c.fixed)
	for _, group := range w.objects.PodGroups {
		c.groups[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}] = group
		c.consumers[group.UID] = true
	}
	for _, node := range w.objects.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		c.infos[node.Name] = info
	}
	for _, name := range slices.Sorted(maps.Keys(c.infos)) {
		c.nodes = append(c.nodes, c.infos[name])
	}
	for _, pod := range w.objects.Pods {
		c.put(pod)
		c.consumers[pod.UID] = true
	}
	c.resources = snapshot.Resources(slices.Concat(w.objects.Pods, c.announced()))
	_, err := c.plain()
	return c, err
}

// announced returns the late members of all gangs. A faulty announcement is reported when its gang is evaluated.
func (c *cluster) announced() []*corev1.Pod {
	var all []*corev1.Pod
	for _, g := range c.sorted() {
		late, _ := snapshot.Late(g.group)
		all = append(all, late...)
	}
	return all
}

// sorted returns all gangs by name.
func (c *cluster) sorted() []*gang {
	return slices.SortedFunc(maps.Values(c.gangs), func(a, b *gang) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
}

// plain is the fleet with its own levels, and all resources counted.
func (c *cluster) plain() (snapshot.View, error) {
	view, err := c.indices.Plain(c.nodes, c.resources)
	if err != nil {
		return view, fmt.Errorf("reading the fleet: %w", err)
	}
	return view, nil
}

// put adds a pod to its node. A pod without a node, or with a deleted one, takes nothing.
func (c *cluster) put(pod *corev1.Pod) {
	if info := c.infos[pod.Spec.NodeName]; info != nil {
		info.AddPod(pod)
	}
}

// take removes pods from their nodes, and frees their devices.
func (c *cluster) take(pods []*corev1.Pod) error {
	for _, pod := range pods {
		if info := c.infos[pod.Spec.NodeName]; info != nil {
			if err := info.RemovePod(klog.Logger{}, pod); err != nil {
				return fmt.Errorf("removing pod %s/%s from its node: %w", pod.Namespace, pod.Name, err)
			}
		}
	}
	c.release(pods)
	return nil
}

// lives reports whether a consumer of a claim is a pod or a PodGroup that is there, or neither.
func (c *cluster) lives(_ string, of resourcev1.ResourceClaimConsumerReference) bool {
	return c.consumers[of.UID] || of.Resource != "pods" && of.Resource != "podgroups"
}

// release frees the devices of pods that were removed, and those that a PodGroup shares if all of its pods were.
func (c *cluster) release(pods []*corev1.Pod) {
	gone := make(map[types.UID]bool, len(pods))
	groups := make(map[types.NamespacedName]bool)
	for _, pod := range pods {
		gone[pod.UID] = true
		if key, ok := snapshot.GroupOf(pod); ok && c.groups[key] != nil {
			groups[key] = true
		}
	}
	for _, info := range c.nodes {
		for _, stays := range info.GetPods() {
			if key, ok := snapshot.GroupOf(stays.GetPod()); ok {
				delete(groups, key)
			}
		}
	}
	for key := range groups {
		gone[c.groups[key].UID] = true
	}
	c.fixed.Release(func(r resourcev1.ResourceClaimConsumerReference) bool { return gone[r.UID] })
}

// cordon closes nodes to entities that wait.
func (c *cluster) cordon(nodes []string) {
	for _, name := range nodes {
		info := c.infos[name]
		node := *info.Node()
		node.Spec.Unschedulable = true
		info.SetNode(&node)
	}
}

// wants counts the accelerators that pods ask for, by resources and by claims.
func (c *cluster) wants(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) int64 {
	return snapshot.Accelerators(pods, c.accelerators) + c.stock.Wanted(group, pods)
}

// groupLister finds PodGroups by name.
type groupLister map[types.NamespacedName]*schedulingv1beta1.PodGroup

// Get returns the PodGroup, or an error that there is none.
func (l groupLister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if group := l[types.NamespacedName{Namespace: namespace, Name: name}]; group != nil {
		return group, nil
	}
	return nil, fmt.Errorf("PodGroup %s/%s: %w", namespace, name, ErrNoGang)
}
