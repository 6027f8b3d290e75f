package contention

import (
	"cmp"
	"math"
	"slices"
)

// Terms say when an eviction pays. The zero value has entities evict whatever that costs.
type Terms struct {
	// Prices bound the losses of victims for entities, by their priority, ascending.
	Prices []Price
	// Restart counts the seconds in which an evicted unit assembles again and loads its checkpoint.
	Restart int64
	// MinRun counts the seconds that a unit runs before an entity with a price may evict it.
	MinRun int64
	// MaxPerDay limits the evictions of a unit within a day, by entities with a price. 0 means without limit.
	MaxPerDay int
}

// Urgent is the lowest priority of entities that evict whatever that costs by DefaultTerms.
const Urgent = 1_000_000

// DefaultTerms returns the terms that the product ships with: entities of a lower priority than Urgent start earlier by
// a hundred accelerator-hours for two that others lose.
func DefaultTerms() Terms {
	const fiftieth = 2
	t := UnpricedTerms()
	t.Prices = []Price{{math.MinInt32, fiftieth}, {Urgent, 0}}
	return t
}

// UnpricedTerms returns terms by which all entities evict whatever that costs, as in Kubernetes.
func UnpricedTerms() Terms {
	const restart = 30
	return Terms{Restart: restart, MaxPerDay: 1}
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

// Price limits the work that others lose for an entity.
type Price struct {
	// From is the lowest priority of the entities that it is for.
	From int32
	// Percent limits the accelerator-seconds that victims lose for each hundred by which the entity starts earlier. 0
	// means without limit: such an entity insists, and its place is free at its instant since units of lower priority
	// leave.
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
func (p Policy) evicts(e *Entity) bool { return p.Preemption && !e.NeverPreempts && !e.Order.Grows }

// insists reports whether an entity evicts units of lower priority whatever that costs.
func (p Policy) insists(e *Entity) bool { return p.evicts(e) && p.percent(e.Order.Priority) == 0 }

// restart returns the seconds that a restart adds in the choice of an entity's victims: 0 for an entity that insists,
// which chooses by the least lost work.
func (p Policy) restart(e *Entity) int64 {
	if p.insists(e) {
		return 0
	}
	return p.Terms.Restart
}

// Balance compares the gain of an eviction with its loss.
type Balance struct {
	// Sooner is the time in seconds by which the entity starts earlier than without it, at most the horizon.
	Sooner int64
	// Won multiplies these seconds by the accelerators of the members that have to start, with those of members that
	// wait for lost ones, and by the entity's price. It is in accelerator-seconds.
	Won int64
	// Lost is the work of the victims since their last checkpoints, and their restart, in accelerator-seconds.
	Lost int64
	// More says that all evictions which make room lose more than Won, whatever Sooner is: they were not weighed one by
	// one. Lost is 0.
	More bool
}

// Pays reports whether the eviction wins more than it loses. One that loses nothing pays.
func (b Balance) Pays() bool { return !b.More && (b.Lost == 0 || b.Won > b.Lost) }

// affordable returns those of the units that may be victims of an eviction that pays: the loss of each alone is less
// than the most that the entity can win. The second result is the balance of all evictions that lose more. Entities
// that insist may evict all.
func (t *turn) affordable(units []*Unit) ([]*Unit, Balance) {
	e := &t.s.Entity
	if t.policy.insists(e) {
		return units, Balance{}
	}
	most := Balance{Sooner: cmp.Or(t.policy.discipline(e).Horizon, week), More: true}
	most.Won = t.won(most.Sooner)
	dear := func(u *Unit) bool {
		lost := u.Lost(t.snap.Now) + u.restarts(t.policy.Terms.Restart)
		return lost > 0 && lost >= most.Won
	}
	if !slices.ContainsFunc(units, dear) {
		return units, most
	}
	return slices.DeleteFunc(slices.Clone(units), dear), most
}

// won returns the value of starting the entity so many seconds sooner, in accelerator-seconds.
func (t *turn) won(sooner int64) int64 {
	e := &t.s.Entity
	accelerators := t.starting()
	if u := t.snap.Running.Get(e.ID); u != nil && e.Order.Replacement {
		accelerators += u.Accelerators
	}
	// In parts of a hundred first: the product of all three may be too large.
	return sooner * accelerators / percent * t.policy.percent(e.Order.Priority)
}

// starting returns the accelerators of the members for which units are evicted: the first ones that have to start (see
// Ask.Fewest). Of what is not in capacities, such as claimed devices, each member has the same share. Members that need
// not start win nothing, however much they request.
func (t *turn) starting() int64 {
	e := &t.s.Entity
	needed, members := int64(max(e.Ask.Needed, 1)), int64(0)
	var first, all int64
	for _, m := range e.Ask.Gang.Members {
		if m.Placed || m.Late {
			continue
		}
		members++
		n := t.snap.accelerators(e.Ask.Gang.Shapes[m.Shape].Demand)
		if all += n; members <= needed {
			first += n
		}
	}
	if members <= needed || t.waitsForAll(e) {
		return e.Accelerators
	}
	return first + max(e.Accelerators-all, 0)*needed/members
}

// balance weighs a choice of victims against waiting for the entity's earliest place.
func (t *turn) balance(c choice) Balance {
	e := &t.s.Entity
	out := Balance{Lost: lost(c.victims, t.snap.Now, t.policy.Terms.Restart)}
	at := int64(None)
	if next, ok := t.withoutEviction(); ok {
		at = next.Instant
	}
	horizon := cmp.Or(t.policy.discipline(e).Horizon, week)
	at = min(at, t.snap.Now+horizon)
	var grace int64
	for _, u := range c.victims {
		if !u.Leaving {
			grace = max(grace, u.Grace)
		}
	}
	out.Sooner = max(0, at-t.snap.Now-grace)
	out.Won = t.won(out.Sooner)
	return out
}

const percent = 100

// withoutEviction returns the entity's earliest place beside the closed leases of earlier entities: open ones bind it
// no more than it may start there, and are not brought up to date with each evaluation.
func (t *turn) withoutEviction() (prospect, bool) {
	all := t.earlier
	defer func() { t.earlier = all }()
	t.earlier = slices.DeleteFunc(slices.Clone(all), func(l *Lease) bool { return l.Open })
	return t.reserve(t.snap, &t.s.Entity, t.ask(t.snap, &t.s.Entity))
}

// victims returns the units that the entity may evict, in the order of Units.Preemptible: an entity that does not
// insist spares those that have just started, and those that were evicted as often today as may be.
func (t *turn) victims() []*Unit {
	units := t.snap.Running.Preemptible(t.s.Order.Priority)
	if t.policy.insists(&t.s.Entity) {
		return units
	}
	spared := func(u *Unit) bool {
		return !u.Leaving &&
			(t.snap.Now < u.Started+t.policy.Terms.MinRun || t.evictions.reached(t.policy.Terms.MaxPerDay, u, t.snap.Now))
	}
	if !slices.ContainsFunc(units, spared) {
		return units
	}
	return slices.DeleteFunc(slices.Clone(units), spared)
}
