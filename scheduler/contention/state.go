package contention

import "maps"

// State has to survive a fail-over. It can be written as JSON and read again; all else that a machine knows follows
// from the waiting entities and the running units.
type State struct {
	Leases []Lease
	// Idled are the accelerator-seconds that all leases have idled, by hour since the beginning of time.
	Idled map[int64]int64
	// Away are the owners that left the queue less than the grace ago.
	Away map[ID]Absence
	// Evictions are those of the last day, by unit. Without prices there are none.
	Evictions map[ID]Evictions
}

// Absence is the record of an owner that left the queue.
type Absence struct {
	Question string
	Budget   Budget
	// Until is the instant until which it is remembered.
	Until int64
}

// State returns the current state.
func (m *Machine) State() State {
	out := State{Idled: maps.Clone(m.idled.hours), Away: maps.Clone(m.away), Evictions: maps.Clone(m.evictions)}
	for _, l := range m.leases {
		of := *l
		of.refused, of.bars, of.lacks, of.spare = nil, nil, deficit{}, spare{}
		out.Leases = append(out.Leases, of)
	}
	return out
}

// Restore gives a new machine the state of another one, before or after the waiting entities are added: leases retain
// their place, their instant and their budget. A lease whose owner does not return within the grace expires. An owner
// that has got a lease since retains that one, with the budget of the former. The next snapshot translates the places.
// No order depends on the state: one that did would have to be applied here to the entities that wait already.
func (m *Machine) Restore(s State, now int64) {
	m.advance(now)
	for at, amount := range s.Idled {
		m.idled.add(at*hour, amount)
	}
	maps.Copy(m.away, s.Away)
	maps.Copy(m.evictions, s.Evictions)
	m.coordinates = nil
	for _, l := range s.Leases {
		if newer := m.Lease(l.Owner); newer != nil {
			newer.Budget = l.Budget
			continue
		}
		l.dirty, l.recheck, l.clears, l.rate = true, None, None, 0
		l.discipline, l.preempts = m.policy.Discipline, m.policy.insists(&Entity{Order: l.Order})
		l.needs = nil
		l.settle(l.Holds)
		if owner := m.queue.spots[l.Owner]; owner != nil {
			l.ask, l.preempts = owner.Ask, m.policy.insists(&owner.Entity)
			l.discipline = m.policy.discipline(&owner.Entity)
		} else if l.Reason.waits() {
			l.Expiry = now + m.policy.Grace
		}
		m.leases = append(m.leases, &l)
	}
	m.sort()
}
