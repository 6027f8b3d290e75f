package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Taken says that capacity on these nodes went to something, or that nodes were lost: leases there are evaluated again.
func (m *Machine) Taken(nodes []int) {
	nodes = slices.Sorted(slices.Values(nodes))
	for _, l := range m.leases {
		if !l.Open && slices.ContainsFunc(nodes, l.holdsNode) { // an open one is placed anew when it may close
			l.dirty = true
		}
	}
}

// Freed says that capacity on these nodes came back, or that nodes came, which was not expected: there may be earlier places than
// those that are leased.
func (m *Machine) Freed(nodes []int) {
	m.Taken(nodes)
	m.queue.mayHavePlaces()
	m.openAll()
	for _, l := range m.leases {
		l.dirty, l.searching = true, true
	}
}

// Ended says that a unit has left its nodes. If it was expected to have left by now, leases elsewhere stay as they are. The next World
// is without the unit.
func (m *Machine) Ended(u *Unit, now int64) {
	m.advance(now)
	nodes := nodesOf(u.Holds)
	for _, l := range m.leases {
		if l.touches(nodes) {
			l.overrun(u, now)
		}
	}
	m.Taken(nodes)
	m.openFor(u)
	if at, _ := u.Expected(now-1, m.policy.MinRemaining); at > now {
		m.early(at)
	}
}

// early has leases look for an earlier place since a unit has ended that was expected to end at an instant: those with an instant that
// is no later. What fits nowhere at the unit's instant does not fit before, with or without it.
func (m *Machine) early(instant int64) {
	for _, l := range m.leases {
		if !l.Firm || l.limit(m.policy, m.now) <= instant {
			l.dirty, l.searching = true, true
		}
	}
}

// limit is the last instant before which another place is of use: the lease's own, or the horizon if that is what keeps it open.
func (l *Lease) limit(p Policy, now int64) int64 {
	if l.Open && p.Horizon > 0 && l.Instant > now+p.Horizon {
		return now + p.Horizon
	}
	return l.Instant
}

// openAll has all lanes evaluated from the first on.
func (m *Machine) openAll() {
	m.queue.open()
	for _, l := range m.leases {
		clear(l.refused)
		clear(l.bars)
	}
}

// openFor has those lanes evaluated from the first on of which an entity may fit since a unit has ended. Of the others, the first is
// evaluated for its lease alone. No lease refuses a lane that stays full: it has no room beside none.
func (m *Machine) openFor(u *Unit) {
	if m.policy.eager || u.End.Certainty == Never {
		m.openAll()
		return
	}
	for _, l := range m.queue.lanes {
		if len(l.spots) == 0 || !l.full || l.lacks.add(u) || l.outdated(m) {
			l.open()
		} else if lease := m.Lease(l.spots[0].ID); lease != nil {
			lease.dirty = true
		}
	}
	for _, l := range m.leases {
		clear(l.refused)
		clear(l.bars)
	}
}

// outdated reports whether a full lane is evaluated again whatever has come back: a service has started or ended since it was found to
// have no place, or the driver may have missed something for so long.
func (l *lane) outdated(m *Machine) bool {
	return l.noPlace && l.services != m.services || m.now >= l.lacks.at+m.policy.MinRemaining
}

// lacks counts what the entity, which does not fit, lacks even if all units leave that it may evict.
func (t *turn) lacks() {
	e, d := &t.s.Entity, &t.s.lane.lacks
	var gone []topology.Running
	if d.evicts = t.policy.Preemption && !e.NeverPreempts; d.evicts {
		gone = t.scratch.gone[:0]
		for _, u := range t.w.Running.Preemptible(e.Order.Priority) {
			gone = append(gone, topology.Running{Holds: u.Holds})
		}
		t.scratch.gone = gone
	}
	d.priority, d.until = e.Order.Priority, t.w.Now
	d.count(t.Machine, t.w, e.Ask, gone)
}
