package contentiontest

import (
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// The checks here are written without the machine's own helpers: they count anew, node by node.

// leases returns copies of all leases.
func (p *Player) leases() []contention.Lease {
	var out []contention.Lease
	for _, l := range p.machine.Leases() {
		out = append(out, *l)
	}
	return out
}

// fail reports a broken invariant.
func (p *Player) fail(format string, args ...any) {
	if p.fault == nil {
		p.fault = fmt.Errorf("%s: %s", Clock(p.now), fmt.Sprintf(format, args...))
	}
}

// checkTurn checks that a start respects the leases that were there before.
func (p *Player) checkTurn(before []contention.Lease, actions []contention.Action) {
	moved := make(map[contention.ID]*contention.Lease)
	var placed *contention.Placed
	for _, a := range actions {
		switch a := a.(type) {
		case contention.Leased:
			moved[a.Lease.Owner] = a.Lease
		case contention.Placed:
			placed = &a
		default:
		}
	}
	if placed == nil {
		return
	}
	e := p.jobs[string(placed.ID)].entity(p.now)
	p.checkSweep(p.jobs[string(placed.ID)])
	for i := range before {
		l := &before[i]
		aside := moved[l.Owner]
		switch {
		case aside != nil && aside.Instant > l.Instant:
			p.fail("%s moves the instant of %s from %s to %s", e.ID, l.Owner, Clock(l.Instant), Clock(aside.Instant))
		case aside != nil:
			// The owner may evict units at the instant, so the free capacity does not show whether it fits.
		case l.Owner != e.ID && !l.Open && l.Order.Compare(e.Order) < 0 && !p.mayUse(e, before, i):
			p.checkLease(e, l, placed)
		}
	}
}

// checkLease checks that a start leaves a lease that binds it its place.
func (p *Player) checkLease(e contention.Entity, l *contention.Lease, placed *contention.Placed) {
	for _, node := range l.Nodes {
		wants, spare := onNode(holds(placed), node), p.spare(l.Holds, node, l.Instant)
		for r := range wants {
			if wants[r] > spare[r] {
				p.fail("%s takes %d of %s that are leased to %s", e.ID, wants, NodeName(node), l.Owner)
			}
		}
	}
}

func holds(a *contention.Placed) []topology.Held {
	var out []topology.Held
	for rank, node := range a.Placement.Nodes {
		if m := a.Gang.Members[rank]; !m.Placed {
			out = append(out, topology.Held{Node: node, Demand: a.Gang.Shapes[m.Shape].Demand})
		}
	}
	return out
}

func onNode(held []topology.Held, node int) topology.Capacity {
	sum := make(topology.Capacity, resources)
	for _, h := range held {
		for r, n := range h.Demand {
			if h.Node == node {
				sum[r] += n
			}
		}
	}
	return sum
}

// resources are GPUs and CPUs.
const resources = 2

// mayUse reports whether basic rule 3 lets the entity use the place of one of the leases.
func (p *Player) mayUse(e contention.Entity, leases []contention.Lease, i int) bool {
	l := &leases[i]
	waits := l.Reason == contention.Head || l.Reason == contention.Preemption
	if waits && !l.Late && e.RunTime > 0 && p.now+e.RunTime <= l.Instant {
		return true
	}
	owner := p.jobs[string(l.Owner)]
	if (l.Reason == contention.Replacement || l.Reason == contention.LateMember) && owner.Preemptible &&
		!e.NeverPreempts &&
		e.Order.Priority > owner.Priority {
		return true
	}
	soon := waits && p.now+e.Grace >= l.Instant
	return e.Preemptible && !owner.NeverPreempts && p.insists(owner) && e.Order.Priority < l.Order.Priority && !soon &&
		l.Reason != contention.Preemption && !shares(leases, i)
}

// insists reports whether the owner evicts units whatever that costs.
func (p *Player) insists(owner *job) bool {
	insists := true
	for _, price := range p.policy.Terms.Prices {
		if price.From <= owner.Priority {
			insists = price.Percent == 0
		}
	}
	return insists
}

// shares reports whether an earlier closed lease has nodes of the place: the owner cannot evict for itself alone there.
func shares(leases []contention.Lease, i int) bool {
	return slices.ContainsFunc(leases[:i], func(other contention.Lease) bool {
		return !other.Open && other.Owner != leases[i].Owner && slices.ContainsFunc(other.Nodes, func(node int) bool {
			return slices.Contains(leases[i].Nodes, node)
		})
	})
}

// spare returns the part of a leased node that others may use beyond the instant.
func (p *Player) spare(leased []topology.Held, node int, instant int64) topology.Capacity {
	free, need := p.book.Ledger().Free[node], onNode(leased, node)
	out := make(topology.Capacity, resources)
	for r := range out {
		then := free[r] - need[r]
		for _, u := range p.running.On(node) {
			firm := u.End.Certainty != contention.Unknown && u.End.Certainty != contention.Never
			if firm && u.End.At > p.now && u.End.At <= instant {
				then += onNode(u.Holds, node)[r]
			}
		}
		out[r] = max(0, min(free[r], then))
	}
	return out
}

// These bound the work of checkRound: the number of entities that are checked, the number of GPUs from which on a fleet
// is checked after some rounds only, and the number of these rounds.
const (
	mostChecked = 8
	small       = 512
	sample      = 200
)

// checkRound checks the state after a round.
func (p *Player) checkRound() {
	p.checkLeases()
	if p.rounded++; p.fleet() > small && p.rounded%sample != 0 {
		return
	}
	for i, id := range p.machine.Waiting() {
		if i == mostChecked || p.fault != nil {
			return
		}
		if reason, _ := p.machine.Reason(id); reason.Cause == contention.Costly {
			continue // it fits, and waits until growing pays
		}
		j := p.jobs[string(id)]
		if reason, _ := p.machine.Reason(id); reason.Cause == contention.SweepsTurn {
			p.checkHeld(j)
			continue
		}
		p.checkConserved(j.entity(p.now))
	}
}

// trials counts the other trials of a job's sweep that run or have a reserved place.
func (p *Player) trials(of *job) int {
	n := 0
	for _, j := range p.jobs {
		if j != of && j.Sweep == of.Sweep && (j.runs || p.kept(j)) {
			n++
		}
	}
	return n
}

// kept reports whether a job has reserved places for its members.
func (p *Player) kept(j *job) bool {
	l := p.machine.Lease(contention.ID(j.Name))
	return l != nil &&
		(l.Reason == contention.Replacement || l.Reason == contention.Start || l.Reason == contention.Move)
}

// limit returns the lowest limit of the sweep's trials that wait, run or have a reserved place; 0 for none.
func (p *Player) limit(sweep string) int {
	lowest := 0
	for name, j := range p.jobs {
		if j.Sweep != sweep || j.Limit == 0 || lowest > 0 && j.Limit >= lowest {
			continue
		}
		if _, waits := p.machine.Reason(contention.ID(name)); waits || j.runs || p.kept(j) {
			lowest = j.Limit
		}
	}
	return lowest
}

// checkSweep checks that a trial which starts does not exceed the limit of its sweep.
func (p *Player) checkSweep(j *job) {
	if j.Sweep == "" || j.runs {
		return
	}
	if n, most := p.trials(j), p.limit(j.Sweep); most > 0 && n >= most {
		p.fail("%s starts beside %d trials of sweep %s, and %d may run", j.Name, n, j.Sweep, most)
	}
}

// checkHeld checks that a trial which waits for its sweep's turn has to: so many run, or wait before it without having
// to, and that it has no place meanwhile.
func (p *Player) checkHeld(j *job) {
	if now, _ := p.machine.OrderOf(contention.ID(j.Name)); now.Compare(j.order()) != 0 {
		p.fail(
			"the machine gives %s the order %+v, and the player computes %+v: a part of it is missing, or lost by a fail-over",
			j.Name,
			now,
			j.order(),
		)
	}
	n := p.trials(j)
	for name, other := range p.jobs {
		reason, waits := p.machine.Reason(contention.ID(name))
		l := p.machine.Lease(contention.ID(name))
		precedes := other.order().Compare(j.order()) < 0 || l != nil && l.Reason == contention.Preemption
		if waits && !other.runs && !p.kept(other) && other.Sweep == j.Sweep && reason.Cause != contention.SweepsTurn &&
			precedes {
			n++
		}
	}
	if most := p.limit(j.Sweep); n < most {
		p.fail("%s waits for its turn of sweep %s, and %d of %d have it", j.Name, j.Sweep, n, most)
	}
	if l := p.machine.Lease(contention.ID(j.Name)); l != nil {
		p.fail("%s waits for its turn of sweep %s, and has a lease", j.Name, j.Sweep)
	}
}

// checkLeases checks owners, budgets and expiries.
func (p *Player) checkLeases() {
	owners := make(map[contention.ID]bool)
	for _, l := range p.machine.Leases() {
		if owners[l.Owner] {
			p.fail("%s has two leases", l.Owner)
		}
		owners[l.Owner] = true
		j := p.jobs[string(l.Owner)]
		switch l.Reason {
		case contention.Head, contention.Preemption:
			if !j.waits {
				p.fail("%s has a lease and does not wait", l.Owner)
			}
		default:
			if l.Expiry <= p.now {
				p.fail("the lease of %s has expired", l.Owner)
			}
		}
		second := p.fleet() * max(p.policy.GuessWeight, 1)
		if p.policy.Budget > 0 && l.Budget.Spent > l.Budget.Granted+second && l.Reason != contention.Move {
			p.fail("%s has idled %d of %d GPU-seconds", l.Owner, l.Budget.Spent, l.Budget.Granted)
		}
	}
}

// checkConserved checks that an entity which waits fits nowhere by basic rules 2 and 3, unless a strict discipline
// holds it up.
func (p *Player) checkConserved(e contention.Entity) {
	before := func(l *contention.Lease) bool { return l.Owner != e.ID && l.Order.Compare(e.Order) < 0 }
	if p.policy.Strict && slices.ContainsFunc(p.machine.Leases(), before) {
		return
	}
	ledger := topology.Ledger{Tree: p.book.Ledger().Tree}
	for node := range ledger.Len() {
		ledger.Free = append(ledger.Free, p.left(e, node))
	}
	if answer := contention.Place(ledger, p.machine.Asks(e, p.snapshot())); answer.Refusal == nil {
		p.fail("%s waits and fits on %s", e.ID, ranges(answer.Placement.Nodes))
	}
}

// left returns the part of a node that the entity may use.
func (p *Player) left(e contention.Entity, node int) topology.Capacity {
	var held []topology.Held
	instant := int64(contention.None)
	leases := p.leases()
	for i, l := range leases {
		if l.Owner == e.ID || l.Open || l.Order.Compare(e.Order) > 0 || p.mayUse(e, leases, i) {
			continue
		}
		if _, in := slices.BinarySearch(l.Nodes, node); in {
			held, instant = append(held, l.Holds...), min(instant, l.Instant)
		}
	}
	if held == nil {
		return p.book.Ledger().Free[node]
	}
	return p.spare(held, node, instant)
}
