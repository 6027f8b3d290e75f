package devices

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// ErrClaims indicates that the claims of a gang cannot be requested; the message names the claim and the fault.
var ErrClaims = errors.New("claims")

// Question is about a gang whose members may claim devices.
type Question struct {
	Nodes []fwk.NodeInfo
	// Group is the gang's PodGroup, Waiting its members without nodes.
	Group   *schedulingv1beta1.PodGroup
	Waiting []*corev1.Pod
	Ledger  topology.Ledger
	Gang    topology.Gang
	// Resources are those of the ledger's capacities, in their order.
	Resources []corev1.ResourceName
	Now       time.Time
	// Lives tells consumers of claims that are gone; nil takes all to be there.
	Lives Lives
}

// Claims reports whether any of the pods claims devices, by ResourceClaims or by an extended resource that stands for a
// class.
func (s *Stock) Claims(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return len(pod.Spec.ResourceClaims) > 0 || backed(s.manager, pod)
	})
}

// backed reports whether the pod asks for an extended resource that stands for a class.
func backed(manager fwk.SharedDRAManager, pod *corev1.Pod) bool {
	return slices.ContainsFunc(extended(pod), func(name corev1.ResourceName) bool { return serves(manager, name) })
}

// Serves reports whether devices of a class stand for the extended resource.
func (s *Stock) Serves(name corev1.ResourceName) bool { return serves(s.manager, name) }

func serves(manager fwk.SharedDRAManager, name corev1.ResourceName) bool {
	return manager.DeviceClassResolver().GetDeviceClass(name) != nil
}

// extended are the extended resources that the containers of the pod ask for.
func extended(pod *corev1.Pod) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				names = append(names, name)
			}
		}
	}
	return names
}

// Asked is the question with devices in it. Of several any may be answered: they differ in which devices the members
// share.
type Asked struct {
	Ledger topology.Ledger
	Gang   topology.Gang
	// demands are the claims of members: demands[i] is resource first+i of the ledger.
	demands []*dra.Demand
	first   int
	// kept are the free channels of nodes that are still in other ComputeDomains, draining those domains.
	kept     map[int]topology.Capacity
	draining []snapshot.Unit
	// returns says that claims of members are being given back.
	returns bool
	// left is the number of claims that the leftover unit in draining stands for.
	left int
	// choice names the nodes that reach the devices which the members share; nil if they share none.
	choice *dra.Choice
	// apart are the shapes without the bars of the choice.
	apart []topology.Shape
}

// NewAsked returns a question without devices.
func NewAsked(l topology.Ledger, gang topology.Gang) Asked { return Asked{Ledger: l, Gang: gang} }

// Demands returns the claims of members: the last columns of the ledger's capacities, in this order.
func (a Asked) Demands() []*dra.Demand { return a.demands }

// Draining returns the units that leave by themselves: ComputeDomains that leave nodes, and claims whose pods are gone.
func (a Asked) Draining() []snapshot.Unit { return a.draining }

// Returns reports whether claims of members were being given back when the question was read: until they are, it has no
// answer.
func (a Asked) Returns() bool { return a.returns }

// Ask adds the devices that the waiting members claim to the question. Nodes that cannot give these devices now are
// full; nodes that never can, or that do not reach the devices that the members share, are barred. Ask returns at least
// one Asked, which may fit nowhere. The error wraps ErrClaims if a claim of the gang is the cause.
func (s *Stock) Ask(ctx context.Context, q Question) ([]Asked, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.update(q); err != nil {
		return nil, err
	}
	read, shared, err := s.read(q)
	if err != nil {
		return nil, err
	}
	channels, err := s.channels(q)
	if err != nil {
		return nil, err
	}
	gang, demands, err := s.split(q, read)
	if err != nil {
		return nil, err
	}
	out, err := s.fitter.Capacity(ctx, s.fleet(), q.Ledger, gang, demands)
	if err != nil {
		return nil, fmt.Errorf("counting devices: %w", err)
	}
	asked := newAsked(out, demands)
	asked.extend(q.Resources, demands)
	asked, err = s.connected(q, asked, channels)
	if err != nil {
		return nil, err
	}
	asked = s.leave(ctx, q, asked)
	if asked.returns = s.giving(q.Waiting); asked.returns {
		asked = asked.within(nil, ruleReturned)
	}
	return s.sharing(ctx, asked, shared)
}

// read reads the claims of the waiting members, by name, and those that several of them share. A claim that a single
// member names binds no other one: it belongs to that member's own demand.
func (s *Stock) read(q Question) (map[string]dra.PodDevices, []*resourcev1.ResourceClaim, error) {
	read := make(map[string]dra.PodDevices, len(q.Waiting))
	uses := map[types.UID]int{}
	for _, pod := range q.Waiting {
		read[pod.Name] = s.fitter.ReadPod(objects{s.manager}, pod, q.Group)
		for _, claim := range read[pod.Name].Shared {
			uses[claim.UID]++
		}
	}
	var shared []*resourcev1.ResourceClaim
	seen := map[types.UID]bool{}
	for _, pod := range q.Waiting {
		var alone []types.UID
		for _, claim := range read[pod.Name].Shared {
			switch {
			case uses[claim.UID] == 1:
				alone = append(alone, claim.UID)
			case !seen[claim.UID]:
				seen[claim.UID] = true
				shared = append(shared, claim)
			}
		}
		if len(alone) > 0 {
			read[pod.Name] = s.fitter.ReadPod(objects{s.manager}, pod, q.Group, alone...)
		}
		if fault := read[pod.Name].Demand.Fault; fault != "" {
			return nil, nil, fmt.Errorf("%w: %s", ErrClaims, fault)
		}
	}
	return read, shared, nil
}

// newAsked finds the resources that stand for the demands: the last that members of their shapes need.
func newAsked(q dra.Question, demands []*dra.Demand) Asked {
	asked := Asked{Ledger: q.Ledger, Gang: q.Gang, demands: make([]*dra.Demand, q.Kinds)}
	for s, demand := range demands {
		if demand == nil || demand.None() {
			continue
		}
		if asked.first == 0 {
			asked.first = len(q.Gang.Shapes[s].Demand) - 1
		}
		asked.demands[len(q.Gang.Shapes[s].Demand)-1-asked.first] = demand
	}
	return asked
}

// unbounded is more of an extended resource than a node can have.
const unbounded = math.MaxInt32

// extend opens nodes that offer none of an extended resource to members for which devices stand for it: there the
// devices count. A node that offers the resource itself gives its own amount (KEP-5004).
func (a Asked) extend(resources []corev1.ResourceName, demands []*dra.Demand) {
	for i, name := range resources {
		if !slices.ContainsFunc(demands, func(d *dra.Demand) bool {
			return d != nil && slices.Contains(d.Extended, name)
		}) {
			continue
		}
		for node, total := range a.Ledger.Total { // the rows are this question's own
			if at(total, i) == 0 && i < len(total) {
				total[i], a.Ledger.Free[node][i] = unbounded, unbounded
			}
		}
	}
}

// within is the question for members that may only go to these nodes.
func (a Asked) within(nodes []string, rule string) Asked {
	a.Gang.Shapes = slices.Clone(a.Gang.Shapes)
	for i, shape := range a.Gang.Shapes {
		a.Gang.Shapes[i] = outside(a.Ledger.Tree, shape, nodes, rule)
	}
	return a
}

// split gives members that claim different devices different shapes, and each shape the claims of its members. Running
// members have their devices: they are of the kind of those that wait, since a plan takes few kinds beside running
// members.
func (s *Stock) split(q Question, read map[string]dra.PodDevices) (topology.Gang, []*dra.Demand, error) {
	gang := q.Gang
	gang.Members = slices.Clone(gang.Members)
	type kind struct {
		shape   int
		devices dra.PodDevices
	}
	var kinds []kind
	var shapes []topology.Shape
	var demands []*dra.Demand
	for _, i := range placedLast(gang.Members) {
		m := gang.Members[i]
		devices := read[m.Name]
		if m.Placed || m.Late { // late ones announce none
			devices = dra.PodDevices{}
		}
		at := slices.IndexFunc(kinds, func(k kind) bool {
			return k.shape == m.Shape && (m.Placed || same(k.devices, devices))
		})
		if at < 0 {
			shape, err := s.reachable(q, gang.Shapes[m.Shape], devices)
			if err != nil {
				return gang, nil, err
			}
			at = len(kinds)
			kinds = append(kinds, kind{m.Shape, devices})
			shapes, demands = append(shapes, shape), append(demands, devices.Demand)
		}
		gang.Members[i].Shape = at
	}
	gang.Shapes = shapes
	return gang, demands, nil
}

// placedLast returns the indices of members: of those that wait, then of those that run.
func placedLast(members []topology.Member) []int {
	var waiting, running []int
	for i, m := range members {
		if m.Placed {
			running = append(running, i)
		} else {
			waiting = append(waiting, i)
		}
	}
	return append(waiting, running...)
}

// same reports whether two pods can go to the same nodes as far as devices are concerned.
func same(a, b dra.PodDevices) bool {
	if (a.Demand == nil) != (b.Demand == nil) || a.Demand != nil && !a.Demand.Same(b.Demand) {
		return false
	}
	return slices.Equal(a.Selectors, b.Selectors) &&
		slices.EqualFunc(a.Shared, b.Shared, func(x, y *resourcev1.ResourceClaim) bool { return x.UID == y.UID })
}

// reachable bars the nodes that do not reach the devices which a pod's claims have already.
func (s *Stock) reachable(q Question, shape topology.Shape, devices dra.PodDevices) (topology.Shape, error) {
	if len(devices.Selectors) == 0 {
		return shape, nil
	}
	names, err := s.inventory.Matching(devices.Selectors...)
	if err != nil {
		return shape, fmt.Errorf("%w: where its devices are cannot be read: %w", ErrClaims, err)
	}
	return outside(q.Ledger.Tree, shape, names, ruleElsewhere), nil
}

// In the words of a shortfall, ruleElsewhere bars nodes that do not reach devices, and ruleReturned all nodes while
// devices are given back.
const (
	ruleElsewhere = "devices of its claims are elsewhere"
	ruleReturned  = "devices of its claims are being given back"
)

// outside bars all nodes but these.
func outside(tree *topology.Tree, shape topology.Shape, open []string, rule string) topology.Shape {
	barred := slices.Repeat([]string{rule}, tree.Len())
	copy(barred[:len(shape.Barred)], shape.Barred)
	for i, already := range shape.Barred {
		if already == "" {
			barred[i] = rule
		}
	}
	for _, name := range open {
		if at, ok := tree.Index(name); ok && (shape.Barred == nil || shape.Barred[at] == "") {
			barred[at] = ""
		}
	}
	shape.Barred = barred
	return shape
}
