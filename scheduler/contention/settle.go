package contention

import "slices"

// Settle ends a round: it meters idle, opens leases that have spent their budget and names the next instant at which
// something changes by time alone. Call Next again after it: entities that an opened lease refused are evaluated again.
func (m *Machine) Settle(snap *Snapshot) []Action {
	out := m.Observe(snap)
	for _, l := range m.leases {
		l.skipped, l.drifted, l.allowed, l.hopes = false, false, false, false
		l.dirty = l.dirty && l.Reason.waits()
	}
	out = slices.Concat(out, m.expire(snap.Now), m.stuck(snap.Now))
	m.blocked = m.policy.reached(&m.idled, snap.Now, snap.Fleet)
	for _, l := range slices.Backward(m.leases) { // the latest opens first
		if l.Open || !l.Reason.waits() {
			continue
		}
		if l.discipline.left(l.Budget) == 0 || m.opens(l, snap.Now) {
			m.open(l, snap.Now)
			out = append(out, Leased{l})
			continue
		}
		l.rate = m.idle(snap, l)
	}
	if at := m.recheck(snap); at != None {
		out = append(out, Rechecks{at})
	}
	return out
}

// open opens a lease and has those evaluated that it barred.
func (m *Machine) open(l *Lease, now int64) {
	l.discipline.open(&l.Budget, now)
	l.Open, l.recheck = true, None
	if len(l.lacks.owed) > 0 {
		l.lacks.forget() // an open lease is counted without
	}
	m.unrefuse(l)
}

// openOrClose opens a lease that has to be open, closes an open one that may close, and reports whether it did either.
func (t *turn) openOrClose(l *Lease) bool {
	switch opens := t.opens(l, t.snap.Now); {
	case opens && !l.Open:
		t.open(l, t.snap.Now)
	case !opens && l.Open && l.discipline.suffices(l.Budget, l.Accelerators, l.toCome, t.snap.Now):
		l.discipline.close(&l.Budget, l.Accelerators, t.snap.Now)
		l.Open, l.Late, l.Since, l.Promised = false, false, t.snap.Now, l.Instant
	default:
		return false
	}
	return true
}

// openLater opens the leases that have to be open since an earlier one drains for a guess; those that are evaluated in
// this round open then.
func (t *turn) openLater(first *Lease) {
	if first.Open || first.Firm {
		return
	}
	for _, l := range t.leases {
		if !l.Open && !l.dirty && l.Reason.waits() && l.Order.Compare(first.Order) > 0 && t.opens(l, t.snap.Now) {
			t.open(l, t.snap.Now)
			t.emit(Leased{l})
		}
	}
}

// opens reports whether a lease has to be open whatever its budget: its instant is too far away, all leases have idled
// enough, or it rests on a guess, and so do as many earlier ones as may. Several places that drain for guesses at a
// time idle more than they gain.
func (m *Machine) opens(l *Lease, now int64) bool {
	if m.blocked || l.Instant == None || l.beyond(now) {
		return true
	}
	if l.Firm || m.policy.MaxGuesses == 0 {
		return false
	}
	return m.guesses(l) >= m.policy.MaxGuesses
}

// guesses counts the closed leases before one that rest on guesses.
func (m *Machine) guesses(l *Lease) int {
	n := 0
	for _, other := range m.leases {
		if other != l && !other.Open && !other.Firm && other.Reason.waits() && other.Order.Compare(l.Order) < 0 {
			n++
		}
	}
	return n
}

// idle returns the number of leased accelerators of a place that are free while an entity is refused for them, 0 if
// none is refused. Accelerators of a node that is away are free in some ledgers, but no entity can use them.
func (m *Machine) idle(snap *Snapshot, l *Lease) int64 {
	if !l.refuses() {
		return 0
	}
	var n int64
	for _, of := range l.needs {
		if _, away := snap.away(of.node); away {
			continue
		}
		n += min(snap.accelerators(snap.Ledger.Free[of.node]), snap.accelerators(of.demand))
	}
	return n
}

// idled returns the accelerator-seconds that a lease idles in so many seconds in which nothing happens.
func (l *Lease) idled(seconds int64) int64 {
	if l.Open {
		return 0
	}
	return l.rate * seconds
}

// weight returns the factor by which the idle of a lease counts against its budget now.
func (l *Lease) weight() int64 {
	if l.Firm || l.Reason != Head {
		return 1
	}
	return max(l.discipline.GuessWeight, 1)
}

// refuses reports whether an entity waits that would fit but for the lease.
func (l *Lease) refuses() bool {
	for refused := range l.refused {
		if len(refused.spots) > 0 {
			return true
		}
	}
	return false
}

// recheck sets when each lease has to be looked at by time alone, and returns the first such instant; None if there is
// none.
func (m *Machine) recheck(snap *Snapshot) int64 {
	first := min(m.firstStuck(), m.queue.retry)
	for _, l := range m.leases {
		l.recheck = m.recheckOf(snap, l)
		first = min(first, l.recheck, l.Expiry)
	}
	return first
}

// overdue returns when a closed lease is placed anew if nothing happens until then: an end in its place is overdue.
// Rounds in which it is not placed anew do not put that off.
func (m *Machine) overdue(l *Lease, now int64) int64 {
	at := l.Instant + 1
	if l.Instant <= l.evaluated {
		at = l.evaluated + m.policy.MinRemaining
	}
	if at > now {
		return at
	}
	if l.recheck > now && l.recheck < None {
		return l.recheck
	}
	return now + m.policy.MinRemaining
}

func (m *Machine) recheckOf(snap *Snapshot, l *Lease) int64 {
	switch {
	case !l.Reason.waits():
		return None
	case l.Open:
		// Not before it may close: the instant is within the horizon then, and the budget is earned.
		earned := l.discipline.earnedAt(l.Budget, l.Accelerators, max(l.toCome, 2*l.Budget.Last), snap.Now)
		if earned == None {
			return None
		}
		// A round in which the lease is not placed anew does not put that off: some drivers have no such rounds.
		if snap.Now < l.recheck && l.recheck < None {
			return l.recheck
		}
		return max(earned, snap.Now+m.policy.MinRemaining, l.nears())
	}
	at := min(l.clears, m.overdue(l, snap.Now))
	if l.rate > 0 && l.discipline.Budget > 0 {
		at = min(at, snap.Now+ceilDiv(l.discipline.left(l.Budget), l.rate*l.weight()))
	}
	for _, node := range l.Nodes {
		if since, away := snap.away(node); away && since+m.policy.Grace > snap.Now {
			at = min(at, since+m.policy.Grace)
		}
	}
	return max(at, snap.Now+1)
}
