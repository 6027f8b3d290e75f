package whatif

import (
	"cmp"
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Displaced is the effect of a drain of some nodes.
type Displaced struct {
	// Nodes are those that would be drained, in the fleet's order.
	Nodes []string
	// Moves are the displaced workloads: gangs in the order of the queue, then single pods in theirs.
	Moves []Move
	// Stay is the number of pods that stay or return at once: those of DaemonSets, and static ones.
	Stay int
	// Lost is the work that is lost, in accelerator-seconds.
	Lost int64
	// Exceeded are the PodDisruptionBudgets that allow fewer disruptions, as namespace/name.
	Exceeded []string
}

// Move is the outcome of a gang, or of a single pod, that a drain displaces.
type Move struct {
	// Name is namespace/name; Pod says that it is a single pod's.
	Name types.NamespacedName
	Pod  bool
	// Pods are those that end: of a gang all of them, unless its job replaces single members. Drained are those of them
	// on the drained nodes.
	Pods, Drained []string
	Accelerators  int64
	// Lost is the work that is lost, in accelerator-seconds.
	Lost int64
	// Forever says that no controller creates the pod again.
	Forever bool
	// Verdict is the scheduler's decision about it then, on the fleet without the drained nodes.
	Verdict Verdict
}

// Settled reports whether all that the drain displaces starts again elsewhere, as far as our scheduler decides.
func (d Displaced) Settled() bool {
	return !slices.ContainsFunc(d.Moves, func(m Move) bool {
		return m.Forever || !m.Verdict.Starts() && m.Verdict.State != Foreign
	})
}

// Drain returns the units that the drain of nodes displaces, and their new places: they wait again, in the queue's
// order, among the entities that wait already, on the fleet without these nodes, their own room elsewhere being free.
// The error is a SelectionError, or a fault of the fleet's objects.
func (w *WhatIf) Drain(ctx context.Context, selection []string) (Displaced, error) {
	c, err := w.newCluster()
	if err != nil {
		return Displaced{}, err
	}
	view, err := c.plain()
	if err != nil {
		return Displaced{}, err
	}
	nodes, err := selected(view, selection)
	if err != nil {
		return Displaced{}, err
	}
	d := &drain{cluster: c, nodes: make(map[string]bool, len(nodes))}
	for _, at := range nodes {
		name := view.Tree.Node(at)
		d.nodes[name] = true
		d.out.Nodes = append(d.out.Nodes, name)
	}
	if err := d.displace(snapshot.Wholes(view.Units(c.groups))); err != nil {
		return Displaced{}, err
	}
	c.cordon(d.out.Nodes)
	return d.out, d.replan(ctx)
}

// drain is a drain under way.
type drain struct {
	*cluster
	nodes map[string]bool
	out   Displaced
	// displaced are the gangs that wait again, singles the pods that do.
	displaced []*gang
	singles   []*corev1.Pod
}

// displace takes all units that lose a pod off their nodes.
func (d *drain) displace(units []snapshot.Unit) error {
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
		lost := u.Contender(snapshot.Reading{Accelerators: d.accelerators, Devices: d.stock.Held})
		move.Pods, move.Drained = names(u.Pods), names(drained)
		move.Accelerators, move.Lost = lost.Accelerators, lost.Lost(d.now.Unix())
		d.out.Moves = append(d.out.Moves, move)
		d.out.Lost += move.Lost
		ended = slices.Concat(ended, u.Pods)
	}
	d.out.Exceeded = d.exceeded(ended)
	return d.take(ended)
}

// displaceGang lets a gang wait again, and returns the part of it that ends.
func (d *drain) displaceGang(u snapshot.Unit, drained []*corev1.Pod) snapshot.Unit {
	g := d.gangs[types.NamespacedName{Namespace: u.Group.Namespace, Name: u.Group.Name}]
	again := g.restarted(d.now)
	if d.objects.Replaces[g.key] {
		u = u.Part(drained)
		again = g.bereft(drained, d.now)
	}
	d.gangs[g.key] = again
	d.displaced = append(d.displaced, again)
	return u
}

func names(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range snapshot.InRankOrder(pods) {
		names = append(names, pod.Name)
	}
	return names
}

// replan runs the queue with the displaced entities in it.
func (d *drain) replan(ctx context.Context) error {
	r, err := d.newRun(ctx)
	if err != nil {
		return err
	}
	gangs := make(map[types.NamespacedName]Verdict, len(d.displaced))
	order := r.queue.Waiting()
	var asked []Gang
	for _, g := range d.displaced {
		if v, outside := d.outside(g); outside {
			gangs[g.key] = v
			continue
		}
		described := d.describe(g)
		described.Position = 1 + slices.Index(order, g.id())
		asked = append(asked, described)
	}
	verdicts, err := r.verdictsOf(ctx, asked)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		gangs[v.Gang.Name] = v
	}
	pods := make(map[types.NamespacedName]Verdict, len(d.singles))
	slices.SortFunc(d.singles, func(a, b *corev1.Pod) int { return orderOf(a).Compare(orderOf(b)) })
	for _, pod := range d.singles {
		v, err := r.single(ctx, unbound(pod, d.now))
		if err != nil {
			return err
		}
		v.Gang = d.describePod(pod)
		pods[v.Gang.Name] = v
	}
	d.conclude(gangs, pods)
	return nil
}

// describePod describes a pod that is in no gang.
func (d *drain) describePod(pod *corev1.Pod) Gang {
	order := orderOf(pod)
	return Gang{
		Name:     types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		Priority: order.Priority, Since: order.Since, Members: 1, Needed: 1,
		Accelerators: d.wants(nil, []*corev1.Pod{pod}), Claims: d.stock.Claims([]*corev1.Pod{pod}),
		Scheduler: cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName),
	}
}

// conclude adds the verdicts, and sorts the moves: gangs in the order of the queue, then pods.
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
		return cmp.Or(
			cmp.Compare(position(a), position(b)),
			a.Verdict.Gang.order().Compare(b.Verdict.Gang.order()),
		)
	})
}

// moveWhole adds the remaining members of a gang that starts again as a whole, since its lost members cannot return
// alone.
func (d *drain) moveWhole(m *Move) {
	g := d.gangs[m.Name]
	all := slices.Concat(g.running, g.waiting)
	m.Pods, m.Accelerators = names(all), d.wants(g.group, all)
	m.Lost += m.Verdict.Preemption.Lost
	d.out.Lost += m.Verdict.Preemption.Lost
	m.Verdict.Gang.Runs = 0
}

// position is the place in the queue, the last of all for a move outside it.
func position(m Move) int {
	if m.Verdict.Gang.Position == 0 {
		return math.MaxInt
	}
	return m.Verdict.Gang.Position
}

func rank(m Move) int {
	if m.Pod {
		return 1
	}
	return 0
}

func (g Gang) order() contention.Order {
	return contention.Order{Priority: g.Priority, Since: g.Since, Namespace: g.Name.Namespace, Name: g.Name.Name}
}

func orderOf(pod *corev1.Pod) contention.Order {
	return snapshot.OrderOf(pod, corev1helpers.PodPriority(pod))
}
