package dra

// Forgetful returns a fitter that remembers nothing but compiled expressions.
func (f *Fitter) Forgetful() *Fitter {
	n := NewFitter(f.features, f.steps)
	n.compiled, n.readings = f.compiled, f.readings
	n.allocator = &upstream{f.features, f.compiled}
	return n
}
