package dra

// Forgetful returns a fitter that remembers nothing but compiled expressions.
func (f *Fitter) Forgetful() *Fitter {
	n := NewFitter(f.features, f.steps)
	n.compiled, n.expressions = f.compiled, f.expressions
	n.allocator = &upstream{f.features, f.compiled}
	return n
}

// Kept returns the numbers of demands and of pools' views through a lens that are remembered.
func (f *Fitter) Kept(inv *Inventory) (demands, seen int) {
	for _, p := range inv.pools {
		seen += len(p.seen)
	}
	return len(f.terms.used) + len(f.terms.before), seen
}

// Price returns the price of the expressions of the demand's claims.
func (d *Demand) Price() uint64 { return d.price }
