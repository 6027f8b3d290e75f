package contention

// Lost sums up the lost members with reserved places. The zero value is none.
type Lost struct {
	// Members counts them.
	Members int64
	// Earned is the sum, over the members, of the instant at which the member left its place and the seconds for which
	// it had used it.
	Earned int64
	// First is the instant at which the first place was left.
	First int64
}

// Add returns the sum with one member more, which left its place at an instant after it had used it for some seconds.
func (l Lost) Add(left, used int64) Lost {
	if l.Members == 0 || left < l.First {
		l.First = left
	}
	l.Members++
	l.Earned += left + used
	return l
}

// Less returns the sum without one of its members.
func (l Lost) Less(left, used int64) Lost {
	l.Members--
	l.Earned -= left + used
	return l
}

// Keep leases the places of lost members, and replaces the owner's lease: by Hold if l has Holds, else by HoldByName.
// The lease ends at l.Expiry, or earlier: when the places together have been reserved for as long as they had been
// used. Otherwise a tenant could start gangs, end them at once, and hold many times its quota. One gang of each
// namespace at a time gets Policy.Unearned seconds in any case, so that a gang that crashes at its start has time to
// return.
func (m *Machine) Keep(l Lease, lost Lost, now int64) []Action {
	m.advance(now)
	until := now
	if lost.Members > 0 {
		until = lost.Earned / lost.Members
	}
	if floor := lost.First + m.policy.Unearned; until < floor && !m.givesUnearned(l) {
		until, l.Unearned = floor, min(floor, l.Expiry)
	}
	l.Expiry = min(l.Expiry, until)
	switch {
	case l.Expiry <= now:
		return m.Revoke(l.Owner, WhyUnearned, now)
	case l.Holds == nil:
		return m.HoldByName(l, now)
	}
	return m.Hold(l, now)
}

// givesUnearned reports whether another owner of the namespace has time that its members have not earned.
func (m *Machine) givesUnearned(to Lease) bool {
	for _, l := range m.leases {
		if l.Unearned > m.now && l.Owner != to.Owner && l.Order.Namespace == to.Order.Namespace {
			return true
		}
	}
	return false
}

// outranks reports whether an entity may use the places that are reserved for a gang's lost or late members. It could
// have the whole gang evicted, and members that are not there must not protect a gang.
func (m *Machine) outranks(e *Entity, l *Lease) bool {
	return (l.Reason == Replacement || l.Reason == LateMember) && l.Preemptible && m.policy.Preemption &&
		!e.NeverPreempts &&
		!e.Order.Replacement &&
		e.Order.Priority > l.Order.Priority
}
