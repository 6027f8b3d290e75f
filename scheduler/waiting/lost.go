package waiting

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

const (
	// halfGrace is the duration of the leases on places of lost members while other members hold theirs: all of these
	// idle until the gang is whole.
	halfGrace = 5 * time.Minute
	// goneGrace is their duration once no member is left and one has failed: the job's policy starts all of them again
	// within seconds, or never.
	goneGrace = time.Minute
	// unclearGrace is the same if it is not known yet whether one has failed.
	unclearGrace = 2 * time.Second
)

// Loss is the way in which a gang lost a member.
type Loss int

const (
	// Unclear is a member that has ended, and how is not known yet.
	Unclear Loss = iota
	// Failed is a member that failed or was evicted, though not by a scheduler.
	Failed
	// TakenAway is a member that is deleted, and nothing says that this was not its job's own doing.
	TakenAway
)

// Lost leases the place of a member that a gang has lost, with the places of those that it lost before, until the gang
// starts again, its group is deleted, or the lease expires (Machine.Keep): a crashed rank must not lose its place to an
// entity that could not have had it. survivors says that other members hold their places. A gang retains no place if
// all its members are taken away. Lost must be called before Left.
func (q *Queue) Lost(group *schedulingv1beta1.PodGroup, pod *corev1.Pod, loss Loss, survivors bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := IDOf(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	old := q.machine.Lease(id)
	if old != nil && old.Reason != contention.Replacement || old == nil && !q.wasWhole(group, pod) {
		return // another place is leased for the gang, or a larger one; or it never started
	}
	p := q.atlas.places[id]
	if old == nil || p == nil {
		p = &place{}
	}
	if p.lost == nil { // also in a lease that another scheduler has left
		p.lost = make(map[types.UID]Loss)
	}
	p.failed = p.failed || loss == Failed
	now := q.clock.Clock.Now()
	p.preemptible = p.preemptible || old != nil && old.Preemptible
	if u := q.unitOf(pod); u != nil {
		p.preemptible = u.Preemptible
	}
	if _, known := p.lost[pod.UID]; !known {
		p.leave(pod, now)
	}
	p.lost[pod.UID] = loss
	grace := p.grace(loss, survivors)
	if grace == 0 {
		q.revoke(id, contention.WhyTakenAway)
		return
	}
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	p.sweep = snapshot.SweepOf(group)
	q.keep(id, snapshot.OrderOf(group, priority), now.Add(grace), p)
}

// leave notes that a member has left its place.
func (p *place) leave(pod *corev1.Pod, now time.Time) {
	m := memberPlace{
		node: pod.Spec.NodeName, takes: snapshot.Takes(pod), unknown: len(pod.Spec.ResourceClaims) > 0,
		of: pod.UID, left: now.Unix(), used: max(0, int64(now.Sub(snapshot.BoundAt(pod)).Seconds())),
	}
	p.members = append(p.members, m)
	p.kept = p.kept.Add(m.left, m.used)
}

// wasWhole reports whether the gang of a pod has been whole: its group says so, or, if that was not written yet, the
// last snapshot.
func (q *Queue) wasWhole(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) bool {
	if meta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
		return true
	}
	u, gang := q.unitOf(pod), group.Spec.SchedulingPolicy.Gang
	return u != nil && gang != nil && len(u.Holds) >= int(gang.MinCount)
}

// grace returns the time for which the place is leased, 0 for no lease.
func (p *place) grace(loss Loss, survivors bool) time.Duration {
	switch {
	case survivors:
		return halfGrace
	case p.failed:
		return goneGrace
	case loss == Unclear, p.unclear():
		return unclearGrace
	}
	return 0
}

// unclear reports whether a member has ended with an unknown result: the result may be reported after the other members
// are deleted for it.
func (p *place) unclear() bool {
	return slices.Contains(slices.Collect(maps.Values(p.lost)), Unclear)
}

// Fails reports that a member which had left has failed. The gang's places are leased for that.
func (q *Queue) Fails(pod *corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, p := q.replacement(pod)
	if l == nil || p.failed {
		return
	}
	p.failed = true
	if until := q.clock.Clock.Now().Add(goneGrace); until.Unix() > l.Expiry {
		q.keep(l.Owner, l.Order, until, p)
	}
}

// Finished ends the lease of a place whose member has succeeded: it needs none any more.
func (q *Queue) Finished(pod *corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, p := q.replacement(pod)
	if l == nil {
		return
	}
	if _, known := p.lost[pod.UID]; !known {
		return
	}
	delete(p.lost, pod.UID)
	p.members = slices.DeleteFunc(p.members, func(m memberPlace) bool {
		if m.of == pod.UID {
			p.kept = p.kept.Less(m.left, m.used)
		}
		return m.of == pod.UID
	})
	if len(p.members) == 0 {
		q.revoke(l.Owner, contention.WhyFinished)
		return
	}
	q.keep(l.Owner, l.Order, time.Unix(l.Expiry, 0), p)
	q.remindIfCandidates()
}

// NoReturn ends the lease of a gang whose job has ended: on places of lost or late members, of a start that was cut
// off, or of a move. What its waiting pods have leased ends with them.
func (q *Queue) NoReturn(gang types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.machine.Lease(IDOf(gang)); l != nil && l.Reason != contention.Head && l.Reason != contention.Preemption {
		q.revoke(l.Owner, contention.WhyNoReturn)
	}
}

// replacement returns the lease for the lost members of a pod's gang, and its place; nil if there is none.
func (q *Queue) replacement(pod *corev1.Pod) (*contention.Lease, *place) {
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return nil, nil
	}
	l, p := q.machine.Lease(IDOf(key)), q.atlas.places[IDOf(key)]
	if l == nil || l.Reason != contention.Replacement || p == nil {
		return nil, nil
	}
	return l, p
}

// keep leases the places of an owner's lost members until an instant at the latest, in place of its earlier lease of
// such.
func (q *Queue) keep(owner contention.ID, order contention.Order, until time.Time, p *place) {
	q.events++
	l := contention.Lease{
		Owner: owner, Order: order, Reason: contention.Replacement, Expiry: until.Unix(), Preemptible: p.preemptible,
		Sweep: p.sweep,
	}
	for _, action := range q.machine.Keep(l, p.kept, q.now()) {
		q.act(nil, action)
	}
	if l := q.machine.Lease(owner); l != nil {
		q.atlas.places[owner] = p
		q.recheck(l.Expiry)
	}
}
