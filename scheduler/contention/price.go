package contention

import (
	"maps"
	"math"
	"slices"
)

// Terms say when an eviction pays. The zero value has entities evict whatever that costs.
type Terms struct {
	// Prices say what victims may lose for entities, by their priority, ascending.
	Prices []Price
	// Restart is how many seconds a unit that is evicted needs to assemble and to load its checkpoint, beside its lost work.
	Restart int64
	// MinRun is how many seconds a unit runs before an entity that has a price evicts it.
	MinRun int64
	// MaxPerDay is how often in a day a unit is evicted for entities that have a price. 0 means without limit.
	MaxPerDay int
}

// Urgent is the lowest priority of entities that evict whatever that costs by PricedTerms.
const Urgent = 1_000_000

// DefaultTerms returns the terms that the product ships with: no prices, as in Kubernetes.
func DefaultTerms() Terms {
	const restart = 30
	return Terms{Restart: restart, MaxPerDay: 1}
}

// PricedTerms returns terms by which entities of a lower priority than Urgent start earlier by a hundred accelerator-hours for ten that others lose.
func PricedTerms() Terms {
	const tenth = 10
	t := DefaultTerms()
	t.Prices = []Price{{math.MinInt32, tenth}, {Urgent, 0}}
	return t
}

// SetTerms replaces the terms.
func (m *Machine) SetTerms(t Terms) {
	m.policy.Terms = t
	m.queue.open()
	m.forget()
	for _, l := range m.leases {
		l.preempts = m.policy.insists(&Entity{Order: l.Order})
		if owner := m.queue.spots[l.Owner]; owner != nil {
			l.preempts = m.policy.insists(&owner.Entity)
		}
		l.dirty = true
	}
}

// Price is what an earlier start of an entity is worth in work that others lose.
type Price struct {
	// From is the lowest priority of the entities that it is for.
	From int32
	// Percent is how many accelerator-seconds victims may lose for a hundred that the entity starts earlier. 0 is without limit: such an
	// entity evicts whatever that costs, and its place is free at its instant since units of lower priority leave.
	Percent int64
}

// percent returns the price of entities of a priority, 0 for one without limit.
func (p Policy) percent(priority int32) int64 {
	var percent int64
	for _, price := range p.Terms.Prices {
		if priority >= price.From {
			percent = price.Percent
		}
	}
	return percent
}

// evicts reports whether an entity may evict units of lower priority, if that pays.
func (p Policy) evicts(e *Entity) bool { return p.Preemption && !e.NeverPreempts }

// insists reports whether an entity evicts units of lower priority whatever that costs.
func (p Policy) insists(e *Entity) bool { return p.evicts(e) && p.percent(e.Order.Priority) == 0 }

// restart returns how many seconds a restart counts in the choice of an entity's victims: none for one that insists, which loses least work.
func (p Policy) restart(e *Entity) int64 {
	if p.insists(e) {
		return 0
	}
	return p.Terms.Restart
}

// Balance compares what an eviction wins with what it loses.
type Balance struct {
	// Sooner is how many seconds the entity starts earlier than without it, at most the horizon.
	Sooner int64
	// Won is what these seconds of all accelerators of the entity, and of its members that wait for lost ones, are worth, by its price, in accelerator-seconds. It is 0 for an entity
	// whose price has no limit.
	Won int64
	// Lost is the work of the victims since their last checkpoints, and their restart, in accelerator-seconds.
	Lost int64
}

// Pays reports whether the eviction wins more than it loses. One that loses nothing pays.
func (b Balance) Pays() bool { return b.Lost == 0 || b.Won > b.Lost }

// balance weighs a choice of victims against waiting for the entity's earliest place.
func (t *turn) balance(c choice) Balance {
	e := &t.s.Entity
	out := Balance{Lost: c.cost}
	at := int64(None)
	if next, ok := t.withoutEviction(); ok {
		at = next.Instant
	}
	if t.policy.Horizon > 0 {
		at = min(at, t.w.Now+t.policy.Horizon)
	}
	var grace int64
	for _, u := range c.victims {
		if out.Lost += u.restarts(t.policy.Terms.Restart); !u.Leaving {
			grace = max(grace, u.Grace)
		}
	}
	out.Sooner = max(0, at-t.w.Now-grace)
	accelerators := e.Accelerators
	if u := t.w.Running.Get(e.ID); u != nil && e.Order.Replacement {
		accelerators += u.Accelerators
	}
	// In parts of a hundred first: the product of all three may be too large.
	out.Won = out.Sooner * accelerators / percent * t.policy.percent(e.Order.Priority)
	return out
}

const percent = 100

// withoutEviction returns the entity's earliest place beside the closed leases of earlier entities: open ones bind it no more than it may
// start there, and are not brought up to date with each evaluation.
func (t *turn) withoutEviction() (prospect, bool) {
	all := t.earlier
	defer func() { t.earlier = all }()
	t.earlier = slices.DeleteFunc(slices.Clone(all), func(l *Lease) bool { return l.Open })
	return t.reserve(t.w, &t.s.Entity, t.s.Ask)
}

// victims returns the units that the entity may evict, in the order of Units.Preemptible: an entity that does not insist spares those
// that have just started, and those that were evicted as often today as may be.
func (t *turn) victims() []*Unit {
	units := t.w.Running.Preemptible(t.s.Order.Priority)
	if t.policy.insists(&t.s.Entity) {
		return units
	}
	spared := func(u *Unit) bool {
		return !u.Leaving && (t.w.Now < u.Started+t.policy.Terms.MinRun || t.evictions.reached(t.policy, u.ID, t.w.Now))
	}
	if !slices.ContainsFunc(units, spared) {
		return units
	}
	return slices.DeleteFunc(slices.Clone(units), spared)
}

// evictions are the instants at which units were evicted, by unit, for a day.
type evictions map[ID][]int64

func (e evictions) reached(p Policy, id ID, now int64) bool {
	n := 0
	for _, at := range e[id] {
		if at > now-day {
			n++
		}
	}
	return p.Terms.MaxPerDay > 0 && n >= p.Terms.MaxPerDay
}

// note notes that units are evicted, and forgets what was more than a day ago.
func (e evictions) note(units []ID, now int64) {
	for _, id := range units {
		e[id] = append(e[id], now)
	}
	maps.DeleteFunc(e, func(_ ID, at []int64) bool { return at[len(at)-1] <= now-day })
}
