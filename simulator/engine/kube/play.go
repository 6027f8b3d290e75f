package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// look is the interval at which the scheduler evaluates those that wait for no reason, as long as there are any.
	look = 30 * time.Second
	// patience is the time to wait for waiting jobs after the last event that could let one of them start: longer than
	// the longest pause of a gang of 4,096 in the stock profile, and than the five minutes after which all are tried.
	patience = 15 * time.Minute
	// restless is the number of cycles at one instant without a placement that is a fault.
	restless = 1_000_000
)

// play advances from instant to instant until no event is left.
func (w *world) play(ctx context.Context) error {
	for ctx.Err() == nil {
		at, ok := w.next()
		if !ok {
			return nil
		}
		w.clock.Advance(at)
		if err := w.happen(); err != nil {
			return err
		}
		w.bringBack()
		if err := w.settle(ctx); err != nil {
			return err
		}
		w.report()
	}
	return ctx.Err()
}

// next is the next instant at which anything is due; false if no pending event could change anything.
func (w *world) next() (time.Time, bool) {
	var first time.Time
	earliest := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for len(w.ends) > 0 && w.isOver(w.ends[0]) {
		w.ends.take()
	}
	if len(w.ends) > 0 {
		earliest(w.scene.Begin.Add(w.ends[0].at))
	}
	if w.happened < len(w.scene.Events) {
		earliest(w.scene.Begin.Add(w.scene.Events[w.happened].At))
	}
	if w.submitted < len(w.scene.Jobs) {
		earliest(w.scene.Begin.Add(w.scene.Jobs[w.submitted].Submit))
	}
	if w.waiting == 0 && !w.membersWait() {
		return first, !first.IsZero() // timers are for those that wait
	}
	scripted := !first.IsZero()
	if at, ok := w.clock.Next(); ok {
		earliest(at)
	}
	if at, ok := w.queue.Next(w.clock.Now()); ok {
		earliest(at)
	}
	earliest(w.left.Add(look))
	if !scripted && first.After(w.quiet.Add(patience)) {
		return first, false
	}
	return first, true
}

// membersWait reports whether members of an elastic job that runs wait.
func (w *world) membersWait() bool {
	for i := range w.jobs[:w.submitted] {
		if j := &w.jobs[i]; j.runs && !j.leaves && j.bound < len(j.nodes) && w.elastic(i) {
			return true
		}
	}
	return false
}

// happen plays the due events of the scenario: ends, then events of nodes, then submissions.
func (w *world) happen() error {
	now := w.clock.Since(w.scene.Begin)
	for len(w.ends) > 0 && w.ends[0].at <= now {
		e := w.ends.take()
		if w.isOver(e) {
			continue
		}
		var err error
		if e.leaves {
			err = w.again(e.of.job, engine.Preempted)
		} else {
			err = w.leave(e.of, engine.Ended)
		}
		if err != nil {
			return err
		}
	}
	for ; w.happened < len(w.scene.Events) && w.scene.Events[w.happened].At <= now; w.happened++ {
		if err := w.carryOut(w.scene.Events[w.happened]); err != nil {
			return err
		}
	}
	var arrive []int
	for ; w.submitted < len(w.scene.Jobs) && w.scene.Jobs[w.submitted].Submit <= now; w.submitted++ {
		arrive = append(arrive, w.submitted)
	}
	slices.SortFunc(arrive, w.byOrder)
	for _, i := range arrive {
		w.watcher.Happens(engine.Event{At: w.since(), Kind: engine.Submitted, Job: i, Running: engine.None})
		arrives := w.submit
		if w.scene.Jobs[i].Bound != nil {
			arrives = w.bindDaemon
		}
		if err := arrives(i); err != nil {
			return err
		}
	}
	return nil
}

// byOrder orders jobs as the queue does.
func (w *world) byOrder(i, j int) int {
	a, b := &w.scene.Jobs[i], &w.scene.Jobs[j]
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submit-a.Waited, b.Submit-b.Waited), cmp.Compare(a.ID, b.ID))
}

// carryOut carries out an event.
func (w *world) carryOut(e scenario.Event) error {
	switch e.Kind {
	case scenario.Extend:
		return w.extend(e.Running)
	case scenario.Suspend, scenario.Withdraw:
		return w.suspend(e)
	case scenario.Restore, scenario.Resume:
		return w.comeBack(e)
	default:
		return w.changeNodes(e)
	}
}

// changeNodes makes nodes fail, drain, be cordoned or return. A job with a pod on a lost node loses all its pods, and
// waits again.
func (w *world) changeNodes(e scenario.Event) error {
	kinds := map[trace.Kind]engine.Kind{
		trace.Fail: engine.NodesFailed, trace.Drain: engine.NodesDrained, trace.Return: engine.NodesReturned,
		scenario.Cordon: engine.NodesCordoned,
	}
	kind, ok := kinds[e.Kind]
	if !ok {
		return fmt.Errorf("playing an event of nodes: no kind %q", e.Kind)
	}
	w.quiet = w.clock.Now()
	w.watcher.Happens(engine.Event{
		At: w.since(), Kind: kind, Job: engine.None, Running: engine.None, Nodes: e.Nodes,
	})
	goes := kind != engine.NodesReturned
	for _, at := range e.Nodes {
		node, ok := stepped.Get[*corev1.Node](w.nodes, types.NamespacedName{Name: w.scene.Ledger.Tree.Node(at)})
		if !ok {
			return fmt.Errorf("playing an event of nodes: %s is gone", w.scene.Ledger.Tree.Node(at))
		}
		changed := *node // shared objects are not modified
		changed.Spec.Unschedulable = goes || w.scene.Closed[at]
		if err := w.nodes.Update(node, touched(w, &changed)); err != nil {
			return err
		}
	}
	if !goes || kind == engine.NodesCordoned {
		return nil
	}
	return w.disrupt(e.Nodes)
}

// extend takes the expected end off the PodGroup of something that runs from the beginning.
func (w *world) extend(running int) error {
	given := w.given.Running[running].Group
	if given == nil || w.running[running].over {
		return nil
	}
	group, ok := stepped.Get[*schedulingv1beta1.PodGroup](w.groups, stepped.NameOf(given))
	if !ok {
		return nil
	}
	w.quiet = w.clock.Now()
	changed := group.DeepCopy()
	delete(changed.Annotations, topology.AnnotationExpectedEnd)
	return w.groups.Update(group, touched(w, changed))
}

// disrupt ends all that has a pod on one of these nodes.
func (w *world) disrupt(nodes []int) error {
	on := func(at int) bool { return slices.Contains(nodes, at) }
	for i := range w.running {
		holds := slices.ContainsFunc(w.given.Running[i].Pods, func(pod *corev1.Pod) bool {
			at, ok := w.scene.Ledger.Tree.Index(pod.Spec.NodeName)
			return ok && on(at)
		})
		if holds && !w.running[i].over {
			if err := w.leave(owner{engine.None, i}, engine.Disrupted); err != nil {
				return err
			}
		}
	}
	var lost []owner
	for i := range w.jobs[:w.submitted] {
		if w.jobs[i].runs && w.scene.Jobs[i].Bound == nil && slices.ContainsFunc(w.jobs[i].nodes, on) {
			lost = append(lost, owner{i, engine.None})
		}
	}
	slices.SortFunc(lost, w.byStart)
	for _, who := range lost {
		if err := w.again(who.job, engine.Disrupted); err != nil {
			return err
		}
	}
	return nil
}

// again has a job leave and wait once more.
func (w *world) again(i int, kind engine.Kind) error {
	if err := w.leave(owner{i, engine.None}, kind); err != nil {
		return err
	}
	return w.submit(i)
}

// bringBack does the work of the scheduling queue's own goroutines, which follow the machine's clock.
func (w *world) bringBack() {
	now := w.clock.Now()
	w.queue.FlushPaused(w.logger)
	if !now.Before(w.left.Add(look)) {
		w.left = now
		w.queue.FlushLeft(w.logger)
	}
}

var errRestless = errors.New(
	"the scheduler does not come to rest at one instant")

// settle does the work that is due at this instant until none is left.
func (w *world) settle(ctx context.Context) error {
	for cycles := 0; ctx.Err() == nil; cycles++ {
		if cycles > restless {
			return errRestless
		}
		todo := w.beside
		w.beside = nil
		for _, do := range todo {
			do()
		}
		asked, err := w.deliver()
		switch {
		case err != nil:
			return err
		case asked || len(w.beside) > 0:
		case w.queue.IsEmpty():
			return nil
		default:
			if err := w.cycle(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// cycle has the scheduler decide about the first of its queue.
func (w *world) cycle(ctx context.Context) error {
	began := w.options.Clock.Now()
	w.sched.ScheduleOne(ctx)
	took := w.options.Clock.Since(began)
	w.bindings.wait()
	group := w.popped
	if group == nil {
		return nil
	}
	who, ok := w.byGroup[types.NamespacedName{Namespace: group.GetNamespace(), Name: group.GetName()}]
	waited := ok && who.job != engine.None && w.jobs[who.job].waits
	_, err := w.deliver()
	decision := engine.Decision{Took: took, Members: group.Size()}
	if waited {
		decision.Members = len(w.scene.Jobs[who.job].Gang.Members)
		decision.Placed = w.jobs[who.job].runs
	}
	w.watcher.Decides(decision)
	return err
}

// report reports the leases that changed at this instant, and the jobs that began to wait.
func (w *world) report() {
	w.reportKept()
	slices.SortFunc(w.fresh, w.byOrder)
	for _, i := range slices.Compact(w.fresh) {
		if w.jobs[i].waits {
			w.watcher.Happens(engine.Event{At: w.since(), Kind: engine.Refused, Job: i, Running: engine.None})
		}
	}
	w.fresh = w.fresh[:0]
}
