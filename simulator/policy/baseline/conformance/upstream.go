package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schedulercache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
	"sigs.k8s.io/kueue/pkg/util/tas"
)

const (
	accelerator = corev1.ResourceName("nvidia.com/gpu")
	// name is that of the one topology, flavor, queue and podset.
	name  = "golden"
	taint = "test/barred"
)

// nothing is an API server in which there is nothing.
type nothing struct{ client.Client }

// List implements client.Reader.
func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// Answer asks Kueue about every question, and fills in the answers.
func Answer(ctx context.Context, g *Golden) error {
	for i := range g.Trees {
		t := &g.Trees[i]
		for j := range t.Asks {
			if err := answer(ctx, t, &t.Asks[j]); err != nil {
				return fmt.Errorf("tree %d, question %d: %w", i, j, err)
			}
		}
	}
	return nil
}

// answer asks a fresh snapshot, because a snapshot retains the results of its evaluations.
func answer(ctx context.Context, t *Tree, a *Ask) error {
	snapshot, err := snapshotOf(ctx, t)
	if err != nil {
		return err
	}
	podset := &kueue.PodSet{Name: name, Count: int32(a.Pods), TopologyRequest: request(a)}
	result := snapshot.FindTopologyAssignmentsForFlavor(ctx, schedulercache.FlavorTASRequests{{
		PodSet: podset, Count: podset.Count, Flavor: name,
		SinglePodRequests: resources.NewRequestsFromMap(map[corev1.ResourceName]int64{
			corev1.ResourceCPU: a.Takes[0], corev1.ResourceMemory: a.Takes[1], accelerator: a.Takes[2],
		}),
	}})
	if result.Failure() != nil {
		return nil
	}
	assignment := result[name].TopologyAssignment
	if assignment == nil {
		return errors.New("neither an assignment nor a reason")
	}
	// The ungater gives ranks to domains in the order of the encoded assignment.
	for domain := range tas.InternalSeqFrom(tas.V1Beta2From(assignment)) {
		a.Hosts = append(a.Hosts, Share{Node: domain.Values[len(domain.Values)-1], Pods: int(domain.Count)})
	}
	return nil
}

// snapshotOf is Kueue's view of the tree: nothing runs, and nodes have their free capacity.
func snapshotOf(ctx context.Context, t *Tree) (*schedulercache.TASFlavorSnapshot, error) {
	cache := schedulercache.New(nothing{})
	log := logr.Discard()
	topology := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, key := range append(slices.Clone(t.Levels), hostname) {
		topology.Spec.Levels = append(topology.Spec.Levels, kueue.TopologyLevel{NodeLabel: key})
	}
	cache.AddOrUpdateTopology(log, topology)
	cache.AddOrUpdateResourceFlavor(log, &kueue.ResourceFlavor{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kueue.ResourceFlavorSpec{TopologyName: new(kueue.TopologyReference(name))},
	})
	for i := range t.Nodes {
		cache.TASCache().SyncNode(nodeOf(t, &t.Nodes[i]))
	}
	if err := cache.AddClusterQueue(ctx, queue()); err != nil {
		return nil, fmt.Errorf("adding the queue: %w", err)
	}
	all, err := cache.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot: %w", err)
	}
	cq := all.ClusterQueue(name)
	if cq == nil || cq.TASFlavors[name] == nil {
		return nil, errors.New("the queue is not active, or its flavor has no topology")
	}
	return cq.TASFlavors[name], nil
}

func nodeOf(t *Tree, n *Node) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{hostname: n.Name}}}
	for l, value := range n.Values {
		node.Labels[t.Levels[l]] = value
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourcePods:   *resource.NewQuantity(n.Free[0], resource.DecimalSI),
		corev1.ResourceCPU:    *resource.NewMilliQuantity(n.Free[1], resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(n.Free[2], resource.BinarySI),
		accelerator:           *resource.NewQuantity(n.Free[3], resource.DecimalSI),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if n.Barred {
		node.Spec.Taints = []corev1.Taint{{Key: taint, Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}

// queue is one with quota for all that it has room for.
func queue() *kueue.ClusterQueue {
	plenty := resource.MustParse("1P")
	q := kueue.FlavorQuotas{Name: name}
	group := kueue.ResourceGroup{}
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, accelerator} {
		group.CoveredResources = append(group.CoveredResources, r)
		q.Resources = append(q.Resources, kueue.ResourceQuota{Name: r, NominalQuota: plenty})
	}
	group.Flavors = []kueue.FlavorQuotas{q}
	return &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{group}},
	}
}

// request returns the request that the annotations of the pod template become.
func request(a *Ask) *kueue.PodSetTopologyRequest {
	r := &kueue.PodSetTopologyRequest{}
	if a.Slice > 0 {
		r.PodsetSliceRequiredTopologyConstraints = []kueue.PodsetSliceRequiredTopologyConstraint{{
			Topology: a.Home, Size: int32(a.Slice),
		}}
	}
	switch {
	case a.Required != "":
		r.Required = new(a.Required)
	case a.Preferred != "":
		r.Preferred = new(a.Preferred)
	case a.Slice == 0:
		r.Unconstrained = new(true)
	}
	return r
}
