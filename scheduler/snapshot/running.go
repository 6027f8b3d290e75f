package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// running holds the units on the nodes of an index. It is brought up to date with the nodes whose generation changed,
// so that the units of a fleet can be had without a look at every pod. Equal generations mean the same pods, by
// pointer: the scheduler's cache never changes a pod in place.
//
// The demand of a pod is computed when its unit is requested, and stored as long as the pod stays.
type running struct {
	// groups are the pods with nodes by PodGroup or, of those in none, each by itself.
	groups map[unitKey]*members
	// order are the keys by the names of their units.
	order []unitKey
	// contenders are the units as package contention reads them, as far as they were asked for.
	contenders contention.Units
	// version is that of the last Reading.
	version int
	// gone lists contenders whose pods have left. They are dropped with the next reading: others may look at the set
	// until then.
	gone []contention.ID
}

// unitKey is a PodGroup, or a pod in none.
type unitKey struct {
	types.NamespacedName
	single bool
}

// name is the unit's name if the key stands for one.
func (k unitKey) name() string {
	if k.single {
		return k.String() + "/"
	}
	return k.String()
}

func keyOfUnit(pod *corev1.Pod) unitKey {
	if group, ok := GroupOf(pod); ok {
		return unitKey{NamespacedName: group}
	}
	return unitKey{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, true}
}

// members are the pods of one key.
type members struct {
	// nodes are those that have pods, by tree number, order the same ascending; nil before that was needed.
	nodes map[int]*occupied
	order []*occupied
	// units are the result of the last grouping of the pods, when the group was this one.
	units []Unit
	group *schedulingv1beta1.PodGroup
	built bool
	// ids are those of the contenders, read says that these are up to date.
	ids  []contention.ID
	read bool
	// budgets is the version of the namespace's disruption budgets when they were read.
	budgets int
}

// occupied is a node of one key, with its pods by name.
type occupied struct {
	node int
	pods []*tenant
}

// tenant is a pod on a node.
type tenant struct {
	pod *corev1.Pod
	// demand is the room that it takes, nil before the first request.
	demand topology.Capacity
	says   says
}

func newRunning() *running { return &running{groups: make(map[unitKey]*members)} }

// tenants returns the pods of a node that have not ended, by namespace and name. Those of before are reused.
func tenants(info fwk.NodeInfo, before []*tenant) []*tenant {
	known := make(map[*corev1.Pod]*tenant, len(before))
	for _, t := range before {
		known[t.pod] = t
	}
	out := make([]*tenant, 0, len(info.GetPods()))
	for _, of := range info.GetPods() {
		pod := of.GetPod()
		switch t := known[pod]; {
		case Ended(pod):
		case t != nil:
			out = append(out, t)
		default:
			out = append(out, &tenant{pod: pod, says: saysOf(pod)})
		}
	}
	slices.SortFunc(out, func(a, b *tenant) int {
		return cmp.Or(strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
	})
	return out
}

// follow takes over the pods of a node.
func (r *running) follow(node int, before, now []*tenant) {
	if slices.Equal(before, now) {
		return
	}
	for key, pods := range byUnit(now) {
		m := r.groups[key]
		if m == nil {
			m = &members{nodes: make(map[int]*occupied)}
			r.groups[key] = m
			at, _ := slices.BinarySearchFunc(r.order, key, compareKeys)
			r.order = slices.Insert(r.order, at, key)
		}
		m.put(node, pods)
	}
	r.leave(node, before, now)
}

// leave drops the units that have no pod on the node any more.
func (r *running) leave(node int, before, now []*tenant) {
	stays := byUnit(now)
	for key := range byUnit(before) {
		m := r.groups[key]
		if _, ok := stays[key]; ok || m == nil {
			continue
		}
		m.drop(node)
		if len(m.nodes) > 0 {
			continue
		}
		r.gone = append(r.gone, m.ids...)
		delete(r.groups, key)
		at, _ := slices.BinarySearchFunc(r.order, key, compareKeys)
		r.order = slices.Delete(r.order, at, at+1)
	}
}

// put has the pods of a node be these.
func (m *members) put(node int, pods []*tenant) {
	switch at := m.nodes[node]; {
	case at == nil:
		at = &occupied{node, pods}
		m.nodes[node] = at
		if m.order != nil {
			i, _ := slices.BinarySearchFunc(m.order, at, compareOccupied)
			m.order = slices.Insert(m.order, i, at)
		}
	case slices.Equal(at.pods, pods):
		return
	default:
		at.pods = pods
	}
	m.built = false
}

// drop takes a node out.
func (m *members) drop(node int) {
	at := m.nodes[node]
	if at == nil {
		return
	}
	delete(m.nodes, node)
	if i, known := slices.BinarySearchFunc(m.order, at, compareOccupied); known {
		m.order = slices.Delete(m.order, i, i+1)
	}
	m.built = false
}

func compareOccupied(a, b *occupied) int { return cmp.Compare(a.node, b.node) }

func compareKeys(a, b unitKey) int { return strings.Compare(a.name(), b.name()) }

func byUnit(pods []*tenant) map[unitKey][]*tenant {
	out := make(map[unitKey][]*tenant, len(pods))
	for _, t := range pods {
		key := keyOfUnit(t.pod)
		out[key] = append(out[key], t)
	}
	return out
}

// list returns all units by name. Those whose pods and PodGroup are the same objects as before are unchanged.
func (r *running) list(groups fwk.PodGroupLister, resources []corev1.ResourceName) []Unit {
	out := make([]Unit, 0, len(r.order))
	for _, key := range r.order {
		m := r.groups[key]
		group := gangOf(key, groups)
		if !m.built || m.group != group {
			m.units, m.group, m.built, m.read = m.build(key, group, resources), group, true, false
		}
		out = append(out, m.units...)
	}
	byName := func(a, b Unit) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(out, byName) { // pods of a group that is no gang stand for themselves
		slices.SortFunc(out, byName)
	}
	return out
}

// gangOf is the PodGroup of a key; nil for pods in none, and for a group that is no gang, or is deleted: it holds
// nothing together.
func gangOf(key unitKey, groups fwk.PodGroupLister) *schedulingv1beta1.PodGroup {
	if key.single {
		return nil
	}
	group, err := groups.Get(key.Namespace, key.Name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	return group
}

// build makes the units of the pods: one if they are a gang's, else one of each.
func (m *members) build(key unitKey, group *schedulingv1beta1.PodGroup, resources []corev1.ResourceName) []Unit {
	var units []Unit
	if group != nil {
		units = []Unit{{Name: key.String(), Group: group, Priority: ptr.Deref(group.Spec.Priority, 0)}}
	}
	if m.order == nil {
		m.order = slices.SortedFunc(maps.Values(m.nodes), compareOccupied)
	}
	for _, at := range m.order {
		for _, t := range at.pods {
			if group == nil {
				units = append(units, single(t.pod))
			}
			if len(t.demand) != len(resources) {
				t.demand = demandOf(t.pod, resources)
			}
			unit := &units[len(units)-1]
			add(unit, at.node, t, resources)
			if p := t.pod.Spec.Priority; p != nil { // a quota counts the pods of a class, not the PodGroups
				unit.Priority = min(unit.Priority, *p)
			}
		}
	}
	if group != nil {
		units = units[0].parts(resources)
	}
	return units
}

// add adds a pod to a unit, after those on nodes with lower numbers.
func add(u *Unit, node int, t *tenant, resources []corev1.ResourceName) {
	if u.tally == nil {
		u.tally = newTally(resources)
	}
	u.tally.add(t.says, t.demand)
	u.Pods = append(u.Pods, t.pod)
	u.Holds = append(u.Holds, topology.Held{Node: node, Demand: t.demand})
}
