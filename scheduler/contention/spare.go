package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// spare counts, for a lease, the members that each domain has room for at its instant beside earlier leases, as the
// number that the owner lacks there, not positive where it fits. An entity that would take more than a domain has to
// spare cannot have the lease move aside (rule 3), which need not be tried then. The count is an upper bound of the
// room: rules and bars are left out.
type spare struct {
	// counted says that the counts hold.
	counted bool
	// at is the instant of the count, until that of the lease.
	at, until int64
	// owed are the earlier leases: their places do not count as room. demand is that of one member.
	owed   []*Lease
	demand topology.Capacity
	// room counts the members that fit on each node, noRoom where the owner may not be; domains are those of the nodes,
	// nil for a single one.
	room    []int32
	domains []int32
	// lacks is by domain.
	lacks []int64
	// more is scratch memory for a node's capacity beyond its free capacity, lost for the members that an entity
	// displaces in each domain.
	more topology.Capacity
	lost []int64
}

// forget makes the counts unknown.
func (s *spare) forget() { s.counted = false }

// spares reports whether the owner of a lease, which asks this, may have another place at the instant beside earlier
// leases if an entity takes its own best place and these units end.
func (t *turn) spares(l *Lease, ask Ask, own Answer, earlier []*Lease, ends []topology.Running) bool {
	if t.policy.uncounted {
		return true
	}
	s := &l.spare
	if !s.counted || s.until != l.Instant || t.snap.Now >= s.at+t.policy.MinRemaining {
		s.at, s.until, s.owed = t.snap.Now, l.Instant, append(s.owed[:0], earlier...)
		s.count(t, ask, ends)
	}
	if !s.counted {
		return true
	}
	clear(s.lost)
	taken := demandOn(holdsOf(own.Gang, own.Placement))
	for node, demand := range taken {
		if s.room[node] > 0 {
			s.lost[domainIn(s.domains, node)] += int64(s.room[node] - s.roomOn(t.snap, node, demand))
		}
	}
	for domain, lacks := range s.lacks {
		if lacks+s.lost[domain] <= 0 {
			return true
		}
	}
	return false
}

// count counts anew. Nothing is counted for owners whose members differ: the room for the least of them says little.
func (s *spare) count(t *turn, ask Ask, ends []topology.Running) {
	needed, shapes := waiting(ask)
	nodes := t.snap.Ledger.Len()
	if s.counted = false; len(shapes) != 1 || nodes > mostCounted/spareLeases || !s.place(t, ask.Gang.Required) {
		return
	}
	s.counted, s.demand = true, shapes[0].Demand
	beyond := t.scratch.sums.beyond(nodes, ends, s.owed)
	for i := range s.lacks {
		s.lacks[i] = needed
	}
	s.room = slices.Grow(s.room[:0], nodes)[:nodes]
	for node, free := range t.snap.Ledger.Free {
		domain := domainIn(s.domains, node)
		if domain < 0 || barred(shapes, node) {
			s.room[node] = noRoom
			continue
		}
		s.room[node] = s.roomFor(free, beyond[node])
		s.lacks[domain] -= int64(s.room[node])
	}
}

// place finds the domains of the level that the owner requires; false if the fleet has no such level.
func (s *spare) place(t *turn, required string) bool {
	s.domains = nil
	domains := 1
	if required != "" {
		level, ok := t.snap.Ledger.Tree.Level(required)
		if !ok {
			return false
		}
		s.domains, domains = t.domains.of(t.snap.Ledger.Tree, level)
	}
	s.lacks, s.lost = slices.Grow(s.lacks[:0], domains)[:domains], slices.Grow(s.lost[:0], domains)[:domains]
	return true
}

// noRoom is the room on a node that the owner cannot use.
const noRoom = -1

// spareLeases divides mostCounted among the counts of leases: DefaultPolicy has as many head leases.
const spareLeases = 8

// roomOn returns the number of members that fit on a node, besides a demand.
func (s *spare) roomOn(snap *Snapshot, node int, besides topology.Capacity) int32 {
	if _, away := snap.away(node); away {
		return 0
	}
	more := s.more[:0]
	for _, u := range snap.Running.On(node) {
		if u.End.firm() && s.at < u.End.At && u.End.At <= s.until {
			more = holding(more, u.Holds, node)
		}
	}
	for _, l := range s.owed {
		more = l.without(more, node)
	}
	s.more = less(more, besides)
	return s.roomFor(snap.Ledger.Free[node], s.more)
}

// roomFor returns the number of members that fit into the free capacity and more.
func (s *spare) roomFor(free, more topology.Capacity) int32 {
	room := int64(mostRoom)
	for r, demand := range s.demand {
		if demand > 0 {
			room = min(room, max(0, at(free, r)+at(more, r))/demand)
		}
	}
	return int32(room)
}

// mostRoom is the room on a node for members that take nothing.
const mostRoom = 1 << 20

// recount counts a node on which something has changed.
func (s *spare) recount(snap *Snapshot, node int) {
	if !s.counted || node >= len(s.room) || s.room[node] < 0 {
		return
	}
	room := s.roomOn(snap, node, nil)
	s.lacks[domainIn(s.domains, node)] -= int64(room - s.room[node])
	s.room[node] = room
}

// domainIn returns the domain of a node, -1 for none; all nodes are in one if there are no domains.
func domainIn(domains []int32, node int) int {
	switch {
	case domains == nil:
		return 0
	case node >= len(domains):
		return -1
	}
	return int(domains[node])
}
