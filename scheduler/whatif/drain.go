package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/victims"
	"github.com/lockstep-project/lockstep/topology"
)

// Displaced is what the drain of some nodes does.
type Displaced struct {
	// Nodes are those that would be drained, in the fleet's order.
	Nodes []string
	// Moves are whom it displaces: gangs in the queue's order, then single pods in theirs.
	Moves []Move
	// Stay is the number of pods that stay or come back at once: those of DaemonSets, and static ones.
	Stay int
	// Lost is the work that is lost, in accelerator-seconds.
	Lost int64
	// Exceeded are the PodDisruptionBudgets that allow fewer disruptions, as namespace/name.
	Exceeded []string
}

// Move is what becomes of a gang, or of a single pod, that a drain displaces.
type Move struct {
	// Name is namespace/name; Pod says that it is a single pod's.
	Name types.NamespacedName
	Pod  bool
	// Pods are those that end: of a gang all of them, unless its job replaces single members. Drained are those of them on the drained
	// nodes.
	Pods, Drained []string
	Accelerators  int64
	// Lost is the work that is lost, in accelerator-seconds.
	Lost int64
	// Forever says that nobody makes the pod again.
	Forever bool
	// Verdict is what the scheduler decides about it then, on the fleet without the drained nodes.
	Verdict Verdict
}

// Settled reports whether everybody whom the drain displaces starts again elsewhere, as far as our scheduler decides.
func (d Displaced) Settled() bool {
	return !slices.ContainsFunc(d.Moves, func(m Move) bool {
		return m.Forever || !m.Verdict.Starts() && m.Verdict.State != Foreign
	})
}

// Drain says whom the drain of nodes displaces and where they go: they are planned again in the queue's order, among those who wait
// already, on the fleet without these nodes, their own room elsewhere being free. The error is a SelectionError, or a fault
// of the fleet's objects.
func (r *WhatIf) Drain(ctx context.Context, selection []string) (Displaced, error) {
	s, err := r.newStage()
	if err != nil {
		return Displaced{}, err
	}
	view, err := s.indices.Plain(s.nodes, s.resources)
	if err != nil {
		return Displaced{}, fmt.Errorf("reading the fleet: %w", err)
	}
	nodes, err := selected(view, selection)
	if err != nil {
		return Displaced{}, err
	}
	d := &drain{stage: s, nodes: make(map[string]bool, len(nodes))}
	for _, at := range nodes {
		name := view.Tree.Node(at)
		d.nodes[name] = true
		d.out.Nodes = append(d.out.Nodes, name)
	}
	if err := d.displace(ctx, view.Units(s.groups)); err != nil {
		return Displaced{}, err
	}
	s.cordon(d.out.Nodes)
	if err := s.restore(); err != nil {
		return Displaced{}, err
	}
	return d.out, d.replan(ctx)
}

// drain is a drain under way.
type drain struct {
	*stage
	nodes map[string]bool
	out   Displaced
	// gangs are those that wait again, singles the pods that do.
	gangs   []*gang
	singles []*corev1.Pod
}

// displace takes everybody off the stage who loses a pod.
func (d *drain) displace(ctx context.Context, units []snapshot.Unit) error {
	var ended []*corev1.Pod
	for _, u := range units {
		drained := slices.DeleteFunc(
			slices.Clone(u.Pods),
			func(p *corev1.Pod) bool { return !d.nodes[p.Spec.NodeName] },
		)
		switch {
		case len(drained) == 0 || u.Leaving():
			continue
		case u.Returns():
			d.out.Stay++
			continue
		}
		move := Move{
			Name: types.NamespacedName{Namespace: drained[0].Namespace, Name: drained[0].Name},
			Pod:  u.Group == nil,
		}
		if u.Group == nil {
			move.Forever = metav1.GetControllerOf(drained[0]) == nil
			d.singles = append(d.singles, drained[0])
		} else if u = d.displaceGang(u, drained); u.Group != nil {
			move.Name = types.NamespacedName{Namespace: u.Group.Namespace, Name: u.Group.Name}
		}
		u = d.stock.Holds(ctx, devices.Asked{}, []snapshot.Unit{u})[0] // how many devices it has
		move.Pods, move.Drained = names(u.Pods), names(drained)
		move.Accelerators, move.Lost = u.Accelerators(d.accelerators), victims.Lost(u, d.accelerators, d.now)
		d.out.Moves = append(d.out.Moves, move)
		d.out.Lost += move.Lost
		ended = slices.Concat(ended, u.Pods)
	}
	d.out.Exceeded = d.exceeded(ended)
	return d.take(ended)
}

// displaceGang lets a gang wait again, and returns what of it ends.
func (d *drain) displaceGang(u snapshot.Unit, drained []*corev1.Pod) snapshot.Unit {
	g := d.stage.gangs[types.NamespacedName{Namespace: u.Group.Namespace, Name: u.Group.Name}]
	again := g.restarted()
	if d.objects.Replaces[g.key] {
		u.Pods = drained
		again = g.bereft(drained)
	}
	d.stage.gangs[g.key] = again
	d.gangs = append(d.gangs, again)
	return u
}

func names(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range snapshot.InRankOrder(pods) {
		names = append(names, pod.Name)
	}
	return names
}

// cordon closes nodes to who waits.
func (s *stage) cordon(nodes []string) {
	for _, name := range nodes {
		info := s.infos[name]
		node := *info.Node()
		node.Spec.Unschedulable = true
		info.SetNode(&node)
	}
	s.changes++
}

// replan plays the queue through with those who were displaced in it.
func (d *drain) replan(ctx context.Context) error {
	p := d.play(d.queue())
	gangs := make(map[types.NamespacedName]Verdict, len(d.gangs))
	for _, g := range d.gangs {
		v := Verdict{Gang: p.describe(g)}
		switch {
		case g.scheduler() != d.profile.Scheduler:
			v.State = Foreign
		case !g.complete():
			v.State, v.Missing = Incomplete, missing(g)
		}
		gangs[g.key] = v
	}
	for {
		g, o, err := p.next(ctx)
		if err != nil {
			return err
		}
		if g == nil {
			break
		}
		if v, displaced := gangs[g.key]; displaced {
			if gangs[g.key], err = p.verdict(ctx, v.Gang, g, o); err != nil {
				return err
			}
		}
		if err := p.apply(ctx, g, o); err != nil {
			return err
		}
	}
	pods := make(map[types.NamespacedName]Verdict, len(d.singles))
	slices.SortFunc(d.singles, func(a, b *corev1.Pod) int { return orderOf(a).Compare(orderOf(b)) })
	for _, pod := range d.singles {
		v, err := p.single(ctx, pod)
		if err != nil {
			return err
		}
		pods[v.Gang.Name] = v
	}
	d.conclude(gangs, pods)
	return nil
}

// conclude says of everybody what becomes of him, in the queue's order.
func (d *drain) conclude(gangs, pods map[types.NamespacedName]Verdict) {
	for i := range d.out.Moves {
		m := &d.out.Moves[i]
		if m.Verdict = gangs[m.Name]; m.Pod {
			m.Verdict = pods[m.Name]
		}
		if m.Verdict.State == Moves {
			d.moveWhole(m)
		}
	}
	slices.SortStableFunc(d.out.Moves, func(a, b Move) int {
		if a.Pod != b.Pod {
			return cmp.Compare(rank(a), rank(b))
		}
		return a.Verdict.Gang.order().Compare(b.Verdict.Gang.order())
	})
}

// moveWhole adds what is left of a gang that starts again as a whole, since what it lost cannot come back alone.
func (d *drain) moveWhole(m *Move) {
	g := d.stage.gangs[m.Name]
	all := slices.Concat(g.running, g.waiting)
	m.Pods, m.Accelerators = names(all), d.wants(g.group, all)
	m.Lost += m.Verdict.Preemption.Lost
	d.out.Lost += m.Verdict.Preemption.Lost
	m.Verdict.Gang.Runs = 0
}

func rank(m Move) int {
	if m.Pod {
		return 1
	}
	return 0
}

func (g Gang) order() decision.Order {
	return decision.Order{Priority: g.Priority, Since: g.Since, Namespace: g.Name.Namespace, Name: g.Name.Name}
}

func orderOf(pod *corev1.Pod) decision.Order {
	return snapshot.OrderOf(pod, corev1helpers.PodPriority(pod))
}

// single says whether there is room for a pod that is in no gang, after all gangs. Which of the nodes with room it gets, the filters
// and scores of its scheduler decide.
func (p *play) single(ctx context.Context, pod *corev1.Pod) (Verdict, error) {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	again := unbound(pod)
	order := orderOf(pod)
	v := Verdict{Gang: Gang{
		Name: types.NamespacedName{
			Namespace: pod.Namespace,
			Name:      pod.Name,
		},
		Priority:     order.Priority,
		Since:        order.Since,
		Members:      1,
		Needed:       1,
		Accelerators: p.wants(nil, []*corev1.Pod{pod}),
		Claims:       p.stock.Claims([]*corev1.Pod{pod}),
		Scheduler:    cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName),
	}}
	view, err := p.view(group)
	if err != nil {
		return v, err
	}
	core, err := view.Gang(group, []*corev1.Pod{again}, nil, nil)
	if err != nil {
		return v, fmt.Errorf("reading pod %s: %w", v.Gang.Name, err)
	}
	room := p.heldFor(types.NamespacedName{})
	if p.head != nil && p.head.gang.order.Compare(order) < 0 && v.Gang.Scheduler == p.profile.Scheduler {
		for node, kept := range p.head.rooms {
			room[node] = quota.Add(room[node], kept)
		}
	}
	answer, err := p.placeSingle(ctx, view, again, view.Ledger(room), core)
	if err != nil {
		return v, err
	}
	if answer.Refusal != nil {
		v.State, v.Shortfall = Waits, answer.Refusal.Short
		if answer.Refusal.Wrong != nil {
			v.State, v.Problem = Wrong, answer.Refusal.String()
		}
		return v, nil
	}
	v.State, v.Where = Fits, where(view, answer.Gang, answer.Placement)
	there, err := p.stock.Assign(ctx, nil, bound(again, view.Tree.Node(answer.Placement.Nodes[0])))
	if err != nil {
		return v, fmt.Errorf("placing pod %s: %w", v.Gang.Name, err)
	}
	p.put(there)
	return v, nil
}

// placeSingle places a single pod, devices and all.
func (p *play) placeSingle(
	ctx context.Context, view snapshot.View, pod *corev1.Pod, ledger topology.Ledger, core topology.Gang,
) (answer decision.Answer, err error) {
	with, err := p.ask(ctx, view, devices.Question{Waiting: []*corev1.Pod{pod}, Ledger: ledger, Gang: core})
	if errors.Is(err, devices.ErrClaims) {
		return decision.Answer{Gang: core, Refusal: &decision.Refusal{Wrong: err}}, nil
	}
	for _, q := range with.questions {
		if answer = decision.Place(q.Ledger, decision.Ask{Gang: q.Gang, Needed: 1}); answer.Refusal == nil {
			break
		}
	}
	return answer, err
}
