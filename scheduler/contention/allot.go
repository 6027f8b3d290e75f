package contention

import "slices"

// allot gives the first trials of a sweep their turn, as many as may start beside those that run, and takes it from the
// others.
func (m *Machine) allot(w *sweep) {
	was := w.in
	w.in = m.first(w)
	for _, s := range was {
		s.turn = false
	}
	for _, s := range w.in {
		s.turn = true
	}
	for _, s := range was {
		if s.turn {
			continue
		}
		m.queue.leaveClass(s)
		s.held = true
		if l := m.Lease(s.ID); l != nil && l.Reason.waits() {
			l.dirty = true // its next evaluation gives it back
		}
	}
	for _, s := range w.in {
		if s.held {
			s.held, s.reason = false, Wait{}
			m.queue.enterClass(s)
		}
	}
}

// first returns the trials that have their turn, in order. Trials with reserved places or with victims that leave
// precede the others, since capacity has already been given up for them.
func (m *Machine) first(w *sweep) []*spot {
	limit, used := w.limit(), w.running.count
	if limit == 0 {
		return slices.Clone(w.spots)
	}
	var in []*spot
	for _, l := range m.leases {
		s := m.queue.spots[l.Owner]
		if s == nil || s.sweep != w || l.Reason == Head || l.Reason == LateMember {
			continue
		}
		in = insertSpot(in, s)
		if l.Reason == Preemption { // the others are counted among those that run
			used++
		}
	}
	doubt := w.doubt
	for _, s := range w.spots {
		if used >= limit && !doubt {
			break
		}
		switch {
		case slices.Contains(in, s):
			continue
		case s.passes:
		case used < limit:
			used++
		default:
			doubt = false
		}
		in = append(in, s)
	}
	slices.SortFunc(in, func(a, b *spot) int { return a.Order.Compare(b.Order) })
	return in
}

// doubtSweeps gives one trial more of each sweep its turn.
func (m *Machine) doubtSweeps() {
	for _, w := range m.queue.sweeps {
		m.doubt(w)
	}
}

// RecountSweep reports that the number of running gangs of a sweep may have changed since the last snapshot. One more
// trial gets its turn, and the snapshot of that turn is counted.
func (m *Machine) RecountSweep(of Sweep) {
	if w := m.queue.sweep(of.Name); w != nil {
		m.doubt(w)
	}
}

func (m *Machine) doubt(w *sweep) {
	if !w.doubt {
		w.doubt = true
		m.allot(w)
	}
}

// countSweeps counts the gangs of each sweep that run in a snapshot, and those with reserved places that do not run.
func (m *Machine) countSweeps(snap *Snapshot) {
	for _, of := range m.queue.sweeps {
		now := trials{}
		if t := snap.Running.sweeps[of.name]; t != nil {
			now.count, now.limit = t.count, t.limit
		}
		for _, l := range m.leases {
			if l.Sweep.Name == of.name && !l.Reason.waits() && snap.Running.Get(l.Owner) == nil {
				now.count, now.limit = now.count+1, lower(now.limit, l.Sweep.Limit)
			}
		}
		if now.count != of.running.count || now.limit != of.running.limit || of.doubt {
			of.running, of.doubt = now, false
			m.allot(of)
		}
	}
}

// takesTurn has a trial that passed its turn take it again: it is evaluated, and may fit now.
func (m *Machine) takesTurn(s *spot) {
	if s.passes {
		s.passes = false
		m.allot(s.sweep)
	}
}

// passTurn has a trial pass its turn for which no end makes room: the others need not wait for room that never becomes
// free.
func (m *Machine) passTurn(s *spot) {
	if s.sweep == nil || s.reason.Cause != WrongQuestion && s.reason.Cause != NoEnd {
		return
	}
	s.passes = true
	m.allot(s.sweep)
}

// heldTurn is the turn of a trial that waits for its sweep's turn: it gives its lease back.
func (t *turn) heldTurn() {
	t.emit(t.drop(WhySweep)...)
	t.emit(Waits{t.s.ID, t.s.heldReason()})
}
