package contention

// Eager returns the policy of a machine that evaluates all that the end of a unit may concern.
func (p Policy) Eager() Policy {
	p.eager = true
	return p
}

// Uncounted places each entity that leases refuse beside them, and has each such lease look for another place.
func (p Policy) Uncounted() Policy {
	p.uncounted = true
	return p
}
