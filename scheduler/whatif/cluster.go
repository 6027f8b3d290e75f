package whatif

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// rooms is room by node.
type rooms map[string]corev1.ResourceList

func (r rooms) add(node string, room corev1.ResourceList) { r[node] = quota.Add(r[node], room) }

// stage is the cluster while the queue is played through: gangs that are placed are put on it, and who leaves is taken off.
type stage struct {
	*WhatIf
	gangs  map[types.NamespacedName]*gang
	groups groupLister
	nodes  []fwk.NodeInfo // by name
	infos  map[string]*framework.NodeInfo
	// resources are all that any pod asks for, so that every view counts the same.
	resources []corev1.ResourceName
	indices   *snapshot.Indices
	// held is the room of late members to come, by gang.
	held map[types.NamespacedName]rooms
	// fixed are the devices, stock what is known of them.
	fixed *devices.Fixed
	stock *devices.Stock
	// changes counts what was put on the stage or taken off.
	changes int
}

// newStage builds the cluster as it is, in which gangs that run hold places for their late members.
func (r *WhatIf) newStage() (*stage, error) {
	s := &stage{
		WhatIf: r, gangs: r.objects.gangs(), groups: make(groupLister, len(r.objects.PodGroups)),
		infos:   make(map[string]*framework.NodeInfo, len(r.objects.Nodes)),
		indices: snapshot.NewIndices(r.levels),
		fixed:   devices.NewFixed(r.objects.Devices.Slices, r.objects.Devices.Classes, r.objects.Devices.Claims),
	}
	s.stock = new(devices.Shared).Stock(s.fixed)
	for _, group := range r.objects.PodGroups {
		s.groups[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}] = group
	}
	for _, node := range r.objects.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		s.infos[node.Name] = info
	}
	for _, name := range slices.Sorted(maps.Keys(s.infos)) {
		s.nodes = append(s.nodes, s.infos[name])
	}
	for _, pod := range r.objects.Pods {
		s.put(pod)
	}
	s.resources = snapshot.Resources(slices.Concat(r.objects.Pods, s.announced()))
	return s, s.restore()
}

// announced are the late members of all gangs. What is wrong with an announcement is said when its gang is asked about.
func (s *stage) announced() []*corev1.Pod {
	var all []*corev1.Pod
	for _, g := range s.sorted() {
		late, _ := snapshot.Late(g.group)
		all = append(all, late...)
	}
	return all
}

// sorted are all gangs by name.
func (s *stage) sorted() []*gang {
	return slices.SortedFunc(maps.Values(s.gangs), func(a, b *gang) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
}

// put adds a pod to its node. One that has none, or whose node is gone, holds nothing.
func (s *stage) put(pod *corev1.Pod) {
	if info := s.infos[pod.Spec.NodeName]; info != nil {
		info.AddPod(pod)
		s.changes++
	}
}

// take removes pods from their nodes, and takes back what devices they have.
func (s *stage) take(pods []*corev1.Pod) error {
	for _, pod := range pods {
		if info := s.infos[pod.Spec.NodeName]; info != nil {
			if err := info.RemovePod(klog.Logger{}, pod); err != nil {
				return fmt.Errorf("taking pod %s/%s off the stage: %w", pod.Namespace, pod.Name, err)
			}
			s.changes++
		}
	}
	s.release(pods)
	return nil
}

// view is the stage as a gang sees it.
func (s *stage) view(group *schedulingv1beta1.PodGroup) (snapshot.View, error) {
	view, err := s.indices.View(s.nodes, s.resources, snapshot.Required(group))
	if err != nil {
		return view, fmt.Errorf("asking for %s: %w", group.Name, err)
	}
	return view, nil
}

// read is a gang as the core sees it, or what cannot be read of it.
func read(
	view snapshot.View, group *schedulingv1beta1.PodGroup, waiting, running []*corev1.Pod,
) (topology.Gang, *decision.Refusal) {
	core, err := view.Gang(group, waiting, running, nil)
	if err != nil {
		return core, &decision.Refusal{Wrong: err}
	}
	return core, nil
}

// heldFor is the room by node that is held for gangs other than this one.
func (s *stage) heldFor(gang types.NamespacedName) rooms {
	sum := make(rooms)
	for other, held := range s.held {
		if other == gang {
			continue
		}
		for node, room := range held {
			sum.add(node, room)
		}
	}
	return sum
}

// restore holds places for the members that gangs miss which run already, as the scheduler does when it starts.
func (s *stage) restore() error {
	s.held = make(map[types.NamespacedName]rooms)
	for _, g := range s.sorted() {
		if len(g.running) == 0 {
			continue
		}
		view, err := s.view(g.group)
		if err != nil {
			return err
		}
		var missing []*corev1.Pod
		if len(g.running) < g.minCount() {
			missing = g.waiting
		}
		core, wrong := read(view, g.group, missing, g.running)
		if wrong != nil || !slices.ContainsFunc(core.Members, func(m topology.Member) bool { return !m.Placed }) {
			continue
		}
		answer := decision.Place(
			view.Ledger(s.heldFor(g.key)), decision.Ask{Gang: core, Needed: len(missing)})
		if answer.Refusal != nil {
			continue // no place can be held
		}
		s.hold(g.key, view, answer, func(m topology.Member) bool { return !m.Placed })
	}
	return nil
}

// hold holds the places of some members of a gang.
func (s *stage) hold(
	gang types.NamespacedName, view snapshot.View, answer decision.Answer, whose func(topology.Member) bool,
) {
	held := make(rooms)
	for rank, at := range answer.Placement.Nodes {
		if m := answer.Gang.Members[rank]; whose(m) {
			held.add(view.Tree.Node(at), view.Room(answer.Gang.Shapes[m.Shape]))
		}
	}
	if delete(s.held, gang); len(held) > 0 {
		s.held[gang] = held
	}
}

// settle puts a gang on its nodes, and gives it its devices.
func (s *stage) settle(ctx context.Context, g *gang, view snapshot.View, answer decision.Answer) error {
	pods := make(map[string]*corev1.Pod, len(g.waiting))
	for _, pod := range g.waiting {
		pods[pod.Name] = pod
	}
	s.hold(g.key, view, answer, func(m topology.Member) bool { return m.Late })
	for rank, at := range answer.Placement.Nodes {
		m := answer.Gang.Members[rank]
		if pod := pods[m.Name]; pod != nil && !m.Placed && !m.Late {
			there, err := s.stock.Assign(ctx, g.group, bound(pod, view.Tree.Node(at)))
			if err != nil {
				return fmt.Errorf("settling %s: %w", g.key, err)
			}
			s.put(there)
		}
	}
	return nil
}

// lower reports whether a pod of a lower priority than this runs anywhere: if not, nobody can be preempted for it.
func (s *stage) lower(priority int32) bool {
	return slices.ContainsFunc(s.nodes, func(n fwk.NodeInfo) bool {
		return slices.ContainsFunc(n.GetPods(), func(p fwk.PodInfo) bool {
			return corev1helpers.PodPriority(p.GetPod()) < priority
		})
	})
}

// groupLister finds PodGroups by name.
type groupLister map[types.NamespacedName]*schedulingv1beta1.PodGroup

// Get returns the PodGroup, or an error that it is not there.
func (l groupLister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if group := l[types.NamespacedName{Namespace: namespace, Name: name}]; group != nil {
		return group, nil
	}
	return nil, fmt.Errorf("PodGroup %s/%s: %w", namespace, name, ErrNoGang)
}
