package waiting

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Left reports that a pod has left its node. All that its unit holds there is assumed to return, once: that is never
// too little.
func (q *Queue) Left(pod *corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events, q.news = q.events+1, q.clock.Clock.Now()
	q.departed.add(pod)
	if q.machine.Len() == 0 && len(q.machine.Leases()) == 0 {
		return
	}
	clear(q.refusedPreemptions)
	at := q.numbers([]string{pod.Spec.NodeName})
	if of := q.partOf(pod); of != nil && len(at) > 0 {
		from := vacancy{of.ID, at[0]}
		if q.vacated[from] {
			return
		}
		q.vacated[from] = true
		q.parts(of, q.news)
		part := *of
		part.Holds = nil
		for _, h := range of.Holds {
			if h.Node == at[0] {
				part.Holds = append(part.Holds, h)
			}
		}
		q.machine.Ended(&part, q.now())
	} else {
		q.machine.Freed(at)
	}
	q.remindIfCandidates()
}

// vacancy is a node of a unit.
type vacancy struct {
	unit contention.ID
	node int
}

// unitOf returns the unit of a pod as of the last snapshot, or as it started since.
func (q *Queue) unitOf(pod *corev1.Pod) *contention.Unit {
	if q.seen.units == nil {
		return nil
	}
	if group, ok := snapshot.GroupOf(pod); ok {
		if u := q.begun[IDOf(group)]; u != nil {
			return u
		}
		if u := q.seen.units.Get(IDOf(group)); u != nil {
			return u
		}
	}
	return q.seen.units.Get(IDOfPod(pod))
}

// partOf returns the unit that a pod is, or in which it is: a member that an elastic gang can do without is a unit of
// its own.
func (q *Queue) partOf(pod *corev1.Pod) *contention.Unit {
	if group, ok := snapshot.GroupOf(pod); ok && q.seen.units != nil {
		if u := q.seen.units.Get(contention.ID(snapshot.PartName(string(IDOf(group)), pod))); u != nil {
			return u
		}
	}
	return q.unitOf(pod)
}

// EndChanged reports that a gang is expected to end at another instant than before: leases in its place rest on it.
func (q *Queue) EndChanged(gang types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen.units == nil {
		return
	}
	if u := q.seen.units.Get(IDOf(gang)); u != nil {
		var nodes []int
		for _, h := range u.Holds {
			nodes = append(nodes, h.Node)
		}
		q.taken(nodes)
	}
}

// SweepChanged reports that a gang is a trial of another sweep than before, or has another limit: others may have their
// turn now.
func (q *Queue) SweepChanged(gang types.NamespacedName, before, after contention.Sweep) {
	q.mu.Lock()
	q.events++
	q.machine.RecountSweep(before)
	q.machine.RecountSweep(after)
	waits := q.machine.Knows(IDOf(gang))
	q.remindIfCandidates()
	q.mu.Unlock()
	if waits {
		q.Call(IDOf(gang)) // it is read anew with its next evaluation
	}
}

// Taken reports that a pod of another scheduler took capacity on a node, or that the node is lost.
func (q *Queue) Taken(node string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken(q.numbers([]string{node}))
}

// taken reports to the machine that there is less on nodes. Pods of other schedulers are bound all the time: those that
// concern neither a lease nor a decision change neither.
func (q *Queue) taken(nodes []int) {
	leases := q.machine.Leases()
	if len(leases) > 0 {
		q.machine.Taken(nodes)
	}
	here := func(node int) bool { return slices.Contains(nodes, node) }
	concerned := slices.ContainsFunc(
		leases,
		func(l *contention.Lease) bool { return slices.ContainsFunc(l.Nodes, here) },
	)
	if d := q.decided; d != nil && d.out.Placed != nil {
		concerned = concerned || slices.ContainsFunc(d.out.Placed.Placement.Nodes, here)
	}
	if concerned {
		q.events, q.news = q.events+1, q.clock.Clock.Now()
		q.remindIfCandidates()
	}
}

// Changed reports that the fleet changed in a way that could help any entity: nodes, devices, or rules about their use.
func (q *Queue) Changed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events, q.news = q.events+1, q.clock.Clock.Now()
	if q.machine.Len() == 0 {
		return
	}
	clear(q.refusedPreemptions)
	q.machine.Freed(nil)
	q.soon()
}

// Settling is Changed for a change that the scheduler may see after us, and that no view shows.
func (q *Queue) Settling() {
	q.Changed()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remind(&q.waker.later, settle)
}

// Again has candidates evaluated again after capacity returned that no event reports.
func (q *Queue) Again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events++
	q.machine.Reopen()
	q.remindIfCandidates()
}

// eviction is one that has begun, and that the view may not show yet.
type eviction struct {
	since time.Time
	// leaving is the unit as it was marked, nil before.
	leaving *contention.Unit
}

// longestEviction is the time for which an eviction may be under way before the view shows it. After that it is taken
// to have failed.
const longestEviction = 30 * time.Second

// Evicting reports that the eviction of units has begun: they leave, though the view does not show it yet. A unit that
// leaves when its grace is over does not end early then.
func (q *Queue) Evicting(units []contention.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events++
	for _, id := range units {
		if q.evicted[id] != nil {
			continue
		}
		e := &eviction{since: q.clock.Clock.Now()}
		q.evicted[id] = e
		if q.seen.units == nil {
			continue
		}
		if u := q.seen.units.Get(id); u != nil && u.Grace > 0 {
			e.mark(q.seen.units, u)
		}
	}
}

// mark marks the unit as one that leaves.
func (e *eviction) mark(units *contention.Units, u *contention.Unit) {
	leaving := *u
	leaving.Leaving = true
	leaving.End = contention.End{At: e.since.Unix() + u.Grace, Certainty: contention.Certain}
	e.leaving = &leaving
	units.Add(&leaving)
}

// markEvicted marks the units as leaving whose eviction has begun.
func (q *Queue) markEvicted(units *contention.Units, now time.Time) {
	for id, e := range q.evicted {
		u := units.Get(id)
		switch {
		case now.Sub(e.since) > longestEviction:
			q.version++ // it is read again
			delete(q.evicted, id)
		case u == nil, u.Leaving && u != e.leaving:
			delete(q.evicted, id)
		case u != e.leaving:
			e.mark(units, u)
		}
	}
}

// Version is that of the readings of units (see snapshot.Reading). It is called with the queue's lock held.
func (q *Queue) Version() int { return q.version }

// Reread has all units read again: a rule about evictions has changed.
func (q *Queue) Reread() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events++
	q.version++
}

// Node reports the current state of a node: one that is cordoned, or whose kubelet is silent, is expected back for the
// machine's grace.
func (q *Queue) Node(node *corev1.Node) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, known := q.missing[node.Name]
	away := isAway(node)
	if away == known { // nodes report all the time
		return
	}
	q.events++
	if away {
		q.missing[node.Name] = q.now()
	} else {
		delete(q.missing, node.Name)
	}
}

// NodeGone forgets a node.
func (q *Queue) NodeGone(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.missing[name]; known {
		delete(q.missing, name)
		q.events++
	}
}

// isAway reports whether a node cannot be used for a while. One that an administrator has closed is not expected back.
func isAway(node *corev1.Node) bool {
	if _, marked := nodehealth.Marked(node); marked {
		return false
	}
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

// away returns since when a node cannot be used that is expected back.
func (q *Queue) away(x *Question, node int) (int64, bool) {
	since, away := q.missing[x.View.Tree.Node(node)]
	return since, away
}

// Hold leases the places of members for a time.
func (q *Queue) Hold(x *Question, reason contention.Reason, holds []topology.Held, expiry time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events++
	now := q.clock.Clock.Now()
	snap, e := q.snapshot(x, now), q.entity(x, now)
	l := contention.Lease{
		Owner: e.ID, Order: e.Order, Reason: reason, Holds: holds, Accelerators: e.Accelerators,
		Expiry: now.Add(expiry).Unix(), Sweep: e.Sweep, Preemptible: e.Preemptible,
	}
	for _, action := range q.machine.HoldIn(&snap, l) {
		q.act(x, action)
	}
	q.recheck(l.Expiry)
}

// RefusePreemption reports that the filters refused the place that victims would have made.
func (q *Queue) RefusePreemption(owner contention.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusedPreemptions[owner] = true
	q.revoked(q.machine.RefusePreemption(owner, q.now()))
}
