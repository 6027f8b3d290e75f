package contention

// Budget bounds the idle time of a lease (basic rule 5). All amounts are accelerator-seconds.
type Budget struct {
	// Granted limits the idle of this closing.
	Granted int64
	// Spent counts the idle since the lease closed, several times while the instant was a guess
	// (Discipline.GuessWeight).
	Spent int64
	// Idled counts the idle of all closings, once.
	Idled int64
	// Last is the Granted of the most recent closing that spent all of it.
	Last int64
	// Carried is the remainder at the time when the lease opened.
	Carried int64
	// Opened is the instant at which it opened.
	Opened int64
}

// newBudget grants a first closing.
func (d Discipline) newBudget(accelerators int64) Budget {
	return Budget{Granted: d.Budget * accelerators}
}

// spend counts idle, so many times.
func (b *Budget) spend(amount, times int64) {
	b.Spent += amount * times
	b.Idled += amount
}

// left returns the idle time that a closed lease may still spend.
func (d Discipline) left(b Budget) int64 {
	if d.Budget == 0 {
		return None
	}
	return max(0, b.Granted-b.Spent)
}

// open notes that the lease opens.
func (d Discipline) open(b *Budget, now int64) {
	if b.Carried = d.left(*b); b.Carried == 0 {
		b.Last = b.Granted
	}
	b.Opened = now
}

// bank returns the budget that an open lease has carried over and earned.
func (d Discipline) bank(b Budget, accelerators, now int64) int64 {
	if d.Budget == 0 {
		return None
	}
	if d.EarnPart == 0 {
		return b.Carried
	}
	return b.Carried + accelerators*max(0, now-b.Opened)/d.EarnPart
}

// suffices reports whether an open lease may close again: its bank covers the expected idle time, and is twice the
// amount that the last closing spent without result, so that a lease neither flaps nor starves.
func (d Discipline) suffices(b Budget, accelerators, toCome, now int64) bool {
	return d.bank(b, accelerators, now) >= max(toCome, 2*b.Last)
}

// close notes that the lease closes.
func (d Discipline) close(b *Budget, accelerators, now int64) {
	b.Granted, b.Spent = d.bank(*b, accelerators, now), 0
}

// earnedAt returns the instant at which the bank of an open lease reaches an amount, None if never.
func (d Discipline) earnedAt(b Budget, accelerators, amount, now int64) int64 {
	missing := amount - d.bank(b, accelerators, now)
	switch {
	case missing <= 0:
		return now
	case d.EarnPart == 0 || accelerators == 0:
		return None
	}
	return now + ceilDiv(missing*d.EarnPart, accelerators)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// ceiling sums the idle of all leases, by hour, over a sliding window (basic rule 5).
type ceiling struct {
	hours map[int64]int64
	sum   int64
}

// add counts idle of a stretch of time that ends now, as of the hour in which it ends.
func (c *ceiling) add(now, amount int64) {
	if amount == 0 {
		return
	}
	if c.hours == nil {
		c.hours = make(map[int64]int64)
	}
	c.hours[now/hour] += amount
	c.sum += amount
}

// within drops the hours before the window, and returns the sum of the others.
func (c *ceiling) within(now, window int64) int64 {
	first := (now - window) / hour
	for at, amount := range c.hours {
		if at < first {
			delete(c.hours, at)
			c.sum -= amount
		}
	}
	return c.sum
}

// reached reports whether the leases may not idle any more on a fleet of so many accelerators.
func (p Policy) reached(c *ceiling, now, accelerators int64) bool {
	if p.CeilingPart == 0 || accelerators == 0 {
		return false
	}
	return c.within(now, p.CeilingWindow) >= p.ceiling(accelerators)
}

// ceiling returns the accelerator-seconds that all leases together may idle over the window.
func (p Policy) ceiling(accelerators int64) int64 {
	return accelerators * (p.CeilingWindow / p.CeilingPart)
}
