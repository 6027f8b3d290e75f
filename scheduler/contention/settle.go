package contention

import "slices"

// Settle ends a round: it meters idle, opens leases that have spent their budget and names the next instant at which something
// changes by time alone. Call Next again after it: entities that an opened lease refused are evaluated again.
func (m *Machine) Settle(w *World) []Action {
	m.enter(w)
	for _, l := range m.leases {
		l.dirty = l.dirty && l.Reason.waits()
	}
	out := append(m.expire(w.Now), m.stuck(w.Now)...)
	m.blocked = m.policy.reached(&m.idled, w.Now, w.Fleet)
	for _, l := range slices.Backward(m.leases) { // the latest opens first
		if l.Open || !l.Reason.waits() {
			continue
		}
		if m.policy.left(l.Budget) == 0 || m.opens(l, w.Now) {
			m.policy.open(&l.Budget, w.Now)
			l.Open = true
			m.unrefuse(l)
			out = append(out, Leased{l})
			continue
		}
		l.rate = m.idle(w, l)
	}
	if at := m.recheck(w); at != None {
		out = append(out, Rechecks{at})
	}
	return out
}

// opens reports whether a lease has to be open whatever its budget: its instant is too far away, all leases have idled enough, or it
// rests on a guess, and so do as many earlier ones as may. Several places that drain for guesses at a time idle more than they gain.
func (m *Machine) opens(l *Lease, now int64) bool {
	if m.blocked || l.Instant == None || m.policy.Horizon > 0 && l.Instant > now+m.policy.Horizon {
		return true
	}
	if l.Firm || m.policy.MaxGuesses == 0 {
		return false
	}
	guesses := 0
	for _, other := range m.leases {
		if other != l && !other.Open && !other.Firm && other.Reason.waits() && other.Order.Compare(l.Order) < 0 {
			guesses++
		}
	}
	return guesses >= m.policy.MaxGuesses
}

// idle returns how many leased accelerators of a place are free while an entity is refused for them, 0 if none is. Those of a node
// that is away are free in some ledgers, but no entity can use them.
func (m *Machine) idle(w *World, l *Lease) int64 {
	if !l.refuses() {
		return 0
	}
	var n int64
	for _, of := range l.needs {
		if _, away := w.away(of.node); away {
			continue
		}
		n += min(w.accelerators(w.Ledger.Free[of.node]), w.accelerators(of.demand))
	}
	return n
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

// recheck sets when each lease has to be looked at by time alone, and returns the first such instant; None if there is none.
func (m *Machine) recheck(w *World) int64 {
	first := m.firstStuck()
	for _, l := range m.leases {
		l.recheck = m.recheckOf(w, l)
		first = min(first, l.recheck, l.Expiry)
	}
	return first
}

func (m *Machine) recheckOf(w *World, l *Lease) int64 {
	switch {
	case !l.Reason.waits():
		return None
	case l.Open:
		// Not before it may close: the instant is within the horizon then, and the budget is earned.
		earned := m.policy.earnedAt(l.Budget, l.Accelerators, max(l.toCome, 2*l.Budget.Last), w.Now)
		if earned == None {
			return None
		}
		return max(earned, w.Now+m.policy.MinRemaining, l.Instant-m.policy.Horizon)
	}
	at := l.clears
	if l.Instant > w.Now || l.Firm && l.Instant > l.evaluated {
		at = min(at, l.Instant+1) // if nothing has happened by then, an end is overdue
	} else {
		at = min(at, w.Now+m.policy.MinRemaining)
	}
	if l.rate > 0 && m.policy.Budget > 0 {
		at = min(at, w.Now+ceilDiv(m.policy.left(l.Budget), l.rate))
	}
	for _, node := range l.Nodes {
		if since, away := w.away(node); away && since+m.policy.Grace > w.Now {
			at = min(at, since+m.policy.Grace)
		}
	}
	return max(at, w.Now+1)
}
