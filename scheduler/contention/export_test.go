package contention

// Eager returns the policy of a machine that evaluates all that the end of a unit may concern.
func (p Policy) Eager() Policy {
	p.eager = true
	return p
}
