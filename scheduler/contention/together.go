package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Gangs on scattered nodes run longer. That fills the fleet, and scatters the next ones more. So a gang that asks for
// no topology waits for room in one domain (rule 15), while that room is expected.

// mostLevels bounds the memory of levels, in questions.
const mostLevels = 4096

// levels remembers which level keeps the gangs of a question together on one fleet.
type levels struct {
	tree  *topology.Tree
	fleet int64
	of    map[gathering]string
}

// gathering is the key of levels.
type gathering struct {
	question string
	part     int64
}

// Asks returns the question by which an entity is placed now: its own, with a required level while the machine keeps it
// together. The entity need not wait.
func (m *Machine) Asks(e Entity, snap *Snapshot) Ask {
	m.enter(snap)
	e.apart = m.parted(&e)
	return m.ask(snap, &e)
}

// ask is Asks for an entity of the machine.
func (m *Machine) ask(snap *Snapshot, e *Entity) Ask {
	ask := e.Ask
	ask.Gang.Required = m.within(snap, e)
	if m.waitsForAll(e) {
		ask.Needed = all(ask)
	}
	return ask
}

// within returns the level that an entity requires, or else the one that keeps it together; "" if it may be on any
// nodes.
func (m *Machine) within(snap *Snapshot, e *Entity) string {
	if e.apart || !m.gathers(e) {
		return e.Ask.Gang.Required
	}
	if m.levels.tree != snap.Ledger.Tree || m.levels.fleet != snap.Fleet || len(m.levels.of) > mostLevels {
		m.levels = levels{tree: snap.Ledger.Tree, fleet: snap.Fleet, of: make(map[gathering]string)}
	}
	key := gathering{e.class().question, m.policy.discipline(e).Together}
	level, known := m.levels.of[key]
	if !known {
		level = m.roomy(snap.Ledger, e.Ask, key.part)
		m.levels.of[key] = level
	}
	return level
}

// gathers reports whether the machine may place an entity inside one domain: it does not insist, and its run time is
// known, since a gang that may end at once gains nothing. Without leases its waiting time would be unknown.
func (m *Machine) gathers(e *Entity) bool {
	if m.policy.MaxLeases == 0 || m.policy.discipline(e).Together == 0 || m.policy.insists(e) {
		return false
	}
	return e.RunTime > 0 && e.wishesNothing()
}

// wishesNothing reports whether the entity is a gang that starts as a whole, on any nodes.
func (e *Entity) wishesNothing() bool {
	gang := &e.Ask.Gang
	switch {
	case e.Accelerators == 0, len(gang.Members) < 2, e.Ask.Needed < len(gang.Members), e.Order.Replacement:
		return false
	case gang.Required != "", gang.Preferred != "", gang.Segment.Size > 0, gang.Spread.Max > 0:
		return false
	}
	return !slices.ContainsFunc(gang.Members, func(m topology.Member) bool { return m.Placed || m.Late })
}

// roomy returns the innermost level that has a large enough domain: empty, it holds the gang in so many percent of its
// room. Nodes that rules bar are left out. "" if there is none, or if the ledger has no totals.
func (m *Machine) roomy(l topology.Ledger, ask Ask, part int64) string {
	if len(l.Total) == 0 || l.Tree == nil {
		return ""
	}
	needed, shapes := waiting(ask)
	demand := leastDemand(shapes)
	room := make([]int64, l.Len())
	for node, total := range l.Total {
		if node < len(room) && !barred(shapes, node) {
			room[node] = members(total, demand)
		}
	}
	for level, of := range slices.Backward(l.Tree.Levels()) {
		domains, count := m.domains.of(l.Tree, level)
		sums := make([]int64, count)
		for node, domain := range domains {
			if domain >= 0 {
				sums[domain] += room[node]
			}
		}
		if len(sums) > 1 && needed*percent <= part*slices.Max(sums) {
			return of.Name
		}
	}
	return ""
}

// members returns the number of members of a demand that fit into a capacity.
func members(c, demand topology.Capacity) int64 {
	least := int64(0)
	for r, n := range demand {
		if n <= 0 {
			continue
		}
		if fits := max(0, at(c, r)) / n; least == 0 || fits < least {
			least = fits
		}
		if least == 0 {
			return 0
		}
	}
	return least
}

// parted reports whether an entity that is added or evaluated was let go while it has waited, with the same question.
func (m *Machine) parted(e *Entity) bool {
	s := m.queue.spots[e.ID]
	return s != nil && s.apart && s.Order.Since.Equal(e.Order.Since) && s.Entity.class().question == e.class().question
}

// far reports whether the entity would wait too long for a place: beyond the horizon of its leases.
func (t *turn) far(p prospect) bool {
	e := &t.s.Entity
	return p.Instant-t.snap.Now > t.policy.discipline(e).horizon(e.Order, t.snap.Now)
}

// parts lets an entity go for which no end makes room in one domain in time, unless it waits for an earlier one.
func (t *turn) parts() bool {
	e := &t.s.Entity
	if len(t.earlier) > 0 || e.apart || t.within(t.snap, e) == e.Ask.Gang.Required {
		return false
	}
	apart := *e
	apart.apart = true
	t.queue.add(apart)
	t.s = t.queue.spots[e.ID]
	return true
}
