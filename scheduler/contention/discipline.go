package contention

import (
	"cmp"
	"time"
)

// Discipline sets the order in which entities of one priority start, and the part of the fleet that idles for those
// that wait longest. Entities of different disciplines wait in one queue.
type Discipline struct {
	// Strict lets no later entity pass one of this discipline that waits and has a lease.
	Strict bool
	// Slack sets when an entity is due: so many hundredths of its run time after it became ready (rule 14), 0 to
	// MaxSlack. 0 orders entities by arrival.
	Slack int64
	// UnknownRun is the run time in seconds that Slack assumes for entities without a known one.
	UnknownRun int64
	// Budget limits the idle of a closed lease, in seconds for each of its owner's accelerators. 0 is no limit.
	Budget int64
	// GuessWeight multiplies the idle that is counted against Budget while the instant of a lease rests on guesses
	// (rule 9). 0 stands for 1.
	GuessWeight int64
	// EarnPart divides the time for which a lease is open: 4 earns a quarter of an hour of Budget per hour. 0 earns
	// nothing.
	EarnPart int64
	// Horizon is the longest time in seconds from now to the instant of a closed lease. 0 is no limit.
	Horizon int64
	// WaitPart divides the owner's wait into a longer horizon: with 4, two days after a wait of eight. 0 keeps the
	// horizon fixed.
	WaitPart int64
	// Together is the largest part of a domain, in percent, that a gang may need for the scheduler to place it inside
	// one (rule 15). 0 disables this.
	Together int64
}

// Backfill returns the discipline in which entities start in their order, and later ones on the capacity that the
// leases of earlier ones leave idle.
func Backfill() Discipline {
	const quarter = 4
	return Discipline{UnknownRun: day, Budget: hour, GuessWeight: 1, EarnPart: quarter, Horizon: day}
}

// FIFO returns Backfill without passing: the first entity that has a lease holds up all later ones.
func FIFO() Discipline {
	d := Backfill()
	d.Strict = true
	return d
}

// Promise returns the discipline in which an entity is due by a twentieth of its run time after it became ready. A
// shorter entity passes a longer one by that much and no more, and the longer an entity waits, the further ahead its
// place is reserved: so waits are short in the mean and bounded for each. Slack-based backfill is of D. Talby and D.
// Feitelson, Supporting priorities and improving utilization of the IBM SP scheduler using slack-based backfilling
// (IPPS 1999), which computes each slack anew; a fixed one keeps the order transitive.
func Promise() Discipline {
	const (
		twentieth = 5
		budget    = 4 * hour
		sixteen   = 16
		quarter   = 4
		half      = 50
	)
	d := Backfill()
	d.Slack, d.Budget, d.GuessWeight, d.WaitPart, d.Together = twentieth, budget, sixteen, quarter, half
	return d
}

// SetDiscipline replaces that of entities that name no other.
func (m *Machine) SetDiscipline(d Discipline) { m.policy.Discipline = d }

// MaxSlack is the largest Slack: ten times the run time.
const MaxSlack = 1000

// longestRun is the longest run time in seconds that counts for Slack. Tenants declare run times: the product of a
// longer one might overflow, and be due centuries ago.
const longestRun = 366 * day

// due returns the instant that orders entities of one priority, the zero time for that at which the entity became
// ready.
func (d Discipline) due(e *Entity) time.Time {
	if d.Slack == 0 {
		return time.Time{}
	}
	const hundred = 100
	run := min(cmp.Or(max(e.RunTime, 0), d.UnknownRun), longestRun)
	seconds := run * min(d.Slack, MaxSlack) / hundred
	return e.Order.Since.Add(time.Duration(seconds) * time.Second)
}

// horizon returns the number of seconds ahead within which the instant of an entity of this discipline must lie for its
// lease to close, None for no limit.
func (d Discipline) horizon(o Order, now int64) int64 {
	switch {
	case d.Horizon == 0:
		return None
	case d.WaitPart == 0:
		return d.Horizon
	}
	return max(d.Horizon, (now-o.Since.Unix())/d.WaitPart)
}

// beyond reports whether an instant is beyond the horizon of a lease.
func (l *Lease) beyond(now int64) bool { return l.Instant-now > l.discipline.horizon(l.Order, now) }

// nears returns the first instant at which the lease's own is within its horizon, None for never.
func (l *Lease) nears() int64 {
	d := l.discipline
	switch {
	case l.Instant == None:
		return None
	case d.Horizon == 0:
		return 0
	case d.WaitPart == 0:
		return l.Instant - d.Horizon
	}
	return min(l.Instant-d.Horizon, ceilDiv(d.WaitPart*l.Instant+l.Order.Since.Unix(), d.WaitPart+1))
}

// strict reports whether the lease holds up all later entities.
func (l *Lease) strict() bool { return l.discipline.Strict }

// discipline returns that of an entity.
func (p Policy) discipline(e *Entity) Discipline {
	if e.Discipline != nil {
		return *e.Discipline
	}
	return p.Discipline
}

// DecideOrder sets the part of an entity's order that the machine decides, the instant at which it is due. Whatever adds
// or evaluates an entity calls it.
func (m *Machine) DecideOrder(e *Entity) { e.Order.Due = m.due(e) }

// due returns when an entity is due: as it was, if it waits already or has a lease since the same instant. A prediction
// that changes, or a run time that gets shorter while it waits, does not move it. After a fail-over it is computed anew
// from the entity alone, before or after State.Restore: a discipline reads nothing else.
func (m *Machine) due(e *Entity) time.Time {
	if s := m.queue.spots[e.ID]; s != nil && s.Order.Since.Equal(e.Order.Since) {
		return s.Order.Due
	}
	if l := m.Lease(e.ID); l != nil && l.Reason.waits() && l.Order.Since.Equal(e.Order.Since) {
		return l.Order.Due
	}
	return m.policy.discipline(e).due(e)
}
