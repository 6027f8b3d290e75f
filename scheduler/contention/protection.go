package contention

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// protection makes options dear whose departure would exceed a disruption budget. Which of several exceed one is known
// only when they are chosen, so options are protected step by step and victims chosen anew, until no budget is exceeded
// or no step protects more.
type protection struct {
	allowed []int
	options []option
	running []topology.Running
	// penalty is more than all options cost together.
	penalty   int64
	protected []bool
	// round counts the choices that were judged.
	round int
}

// victimRounds is the number of choices whose victims alone are protected. After that whole budgets are: a budget of a
// hundred replicas has ten choices of ten. So victims are chosen five times at most after the first.
const victimRounds = 3

func newProtection(snap *Snapshot, options []option) *protection {
	p := &protection{
		allowed: snap.Budgets, options: options, penalty: 1,
		running: make([]topology.Running, len(options)), protected: make([]bool, len(options)),
	}
	for i, o := range options {
		p.running[i] = topology.Running{
			Name: string(o.units[0].ID), Holds: o.holds, Cost: o.cost, End: topology.EndUnknown,
		}
		p.penalty += o.cost
	}
	for i, o := range options {
		if exceeded(snap.Budgets, o.units...) {
			p.protect(i)
		}
	}
	return p
}

// protect reports whether the option was not protected before.
func (p *protection) protect(i int) bool {
	if p.protected[i] {
		return false
	}
	p.protected[i] = true
	p.running[i].Cost += p.penalty
	return true
}

// excess returns the number of members that the departure of these options takes from budgets beyond what they allow.
func (p *protection) excess(victims []int) int {
	units, n := p.units(victims), 0
	for _, budget := range budgetsOf(units) {
		n += max(disrupted(budget, units)-p.allowed[budget], 0)
	}
	return n
}

func (p *protection) units(victims []int) []*Unit {
	var units []*Unit
	for _, i := range victims {
		units = append(units, p.options[i].units...)
	}
	return units
}

// budgetsOf returns the budgets that cover any of the units, ascending.
func budgetsOf(units []*Unit) []int {
	var budgets []int
	for _, u := range units {
		for _, c := range u.Budgets {
			budgets = append(budgets, c.Budget)
		}
	}
	slices.Sort(budgets)
	return slices.Compact(budgets)
}

// more protects further options for the budgets that the victims exceed together, and reports whether it did: first the
// victims, then of every budget all options but the cheapest that it allows, at last all options of those that are
// exceeded.
func (p *protection) more(victims []int) bool {
	units := p.units(victims)
	exceeded := slices.DeleteFunc(budgetsOf(units), func(budget int) bool {
		return disrupted(budget, units) <= p.allowed[budget]
	})
	for more := false; !more; {
		switch p.round++; {
		case p.round <= victimRounds:
			if more = p.protectCovered(victims, exceeded); !more {
				p.round = victimRounds // all of them are protected already, others may not be
			}
		case p.round == victimRounds+1:
			more = p.protectBeyond()
		case p.round == victimRounds+2:
			more = p.protectCovered(p.all(), exceeded)
		default:
			return false
		}
	}
	return true
}

// protectBeyond protects of every budget all options but the cheapest that it allows, and no others: those may have
// been protected as victims. It reports whether that makes a difference.
func (p *protection) protectBeyond() bool {
	beyond := make([]bool, len(p.options))
	for budget, covered := range p.byBudget() {
		for _, i := range covered[p.within(covered, budget):] {
			beyond[i] = true
		}
	}
	if slices.Equal(beyond, p.protected) {
		return false
	}
	for i := range p.options {
		if p.protected[i] {
			p.protected[i] = false
			p.running[i].Cost -= p.penalty
		}
		if beyond[i] {
			p.protect(i)
		}
	}
	return true
}

// all returns all options.
func (p *protection) all() []int {
	all := make([]int, len(p.options))
	for i := range all {
		all[i] = i
	}
	return all
}

// protectCovered protects those of the options that one of the budgets covers, and reports whether one was not
// protected before.
func (p *protection) protectCovered(options, budgets []int) bool {
	more := false
	for _, i := range options {
		covers := func(budget int) bool { return disrupted(budget, p.options[i].units) > 0 }
		if slices.ContainsFunc(budgets, covers) {
			more = p.protect(i) || more
		}
	}
	return more
}

// byBudget returns the options that each budget covers, the cheapest first.
func (p *protection) byBudget() [][]int {
	covered := make([][]int, len(p.allowed))
	for i, o := range p.options {
		for _, budget := range budgetsOf(o.units) {
			if disrupted(budget, o.units) > 0 {
				covered[budget] = append(covered[budget], i)
			}
		}
	}
	for _, options := range covered {
		slices.SortStableFunc(options, func(a, b int) int { return cmp.Compare(p.options[a].cost, p.options[b].cost) })
	}
	return covered
}

// within returns the number of options, from the first on, that a budget allows to leave together.
func (p *protection) within(options []int, budget int) int {
	left := p.allowed[budget]
	for n, i := range options {
		if left -= disrupted(budget, p.options[i].units); left < 0 {
			return n
		}
	}
	return len(options)
}
