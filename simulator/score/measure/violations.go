package measure

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// broken names the gang's rules about levels that a start breaks.
type broken struct {
	// network and nvlink report that a start breaks a rule about a level of that kind.
	network, nvlink bool
}

func (b *broken) any() bool { return b.network || b.nvlink }

// booked reports that a start took missing devices, or other missing resources.
type booked struct{ devices, others bool }

// count counts a start.
func (v *Violations) count(rules broken, ledger booked, partial bool) {
	for _, c := range []struct {
		broken bool
		count  *int
	}{
		{partial, &v.PartialGangs},
		{rules.any(), &v.RequiredLevel},
		{rules.nvlink, &v.NVLink},
		{ledger.devices, &v.DRA},
		{ledger.others, &v.DoubleBooking},
	} {
		if c.broken {
			*c.count++
		}
	}
}

// booked checks the nodes of a start that was taken from the ledger.
func (h *holdings) booked(s *start) booked {
	var b booked
	for i, node := range s.nodes {
		devices, others := h.overdrawn(node, s.demand(i))
		b.devices, b.others = b.devices || devices, b.others || others
	}
	return b
}

// broken looks for rules about levels that the start breaks: the required level, and that of segments.
func (d *domains) broken(s *start) broken {
	var b broken
	b.look(d, s.job.Gang.Required, s.nodes)
	if size := s.job.Gang.Segment.Size; size > 0 {
		for segment := range slices.Chunk(mainRanks(&s.job.Gang), size) {
			b.look(d, s.job.Gang.Segment.Level, s.on(segment))
		}
	}
	return b
}

// look checks that the nodes are in one domain of a level.
func (b *broken) look(d *domains, level string, nodes []int) {
	at := d.level(level)
	if at < 0 || len(nodes) == 0 || d.together(at, nodes) {
		return
	}
	if at < len(d.levels) && d.levels[at].Accelerator {
		b.nvlink = true
	} else {
		b.network = true
	}
}

// level finds a level by its name or key, that of nodes being behind the others; -1 for none.
func (d *domains) level(nameOrKey string) int {
	switch nameOrKey {
	case "":
		return -1
	case topology.LevelNode, hostname:
		return len(d.levels)
	}
	at := slices.IndexFunc(d.levels, func(l topology.Level) bool { return l.Name == nameOrKey })
	if at < 0 {
		at = slices.IndexFunc(d.levels, func(l topology.Level) bool { return l.Key == nameOrKey })
	}
	return at
}

// hostname is the key of the level of nodes.
const hostname = "kubernetes.io/hostname"

// mainRanks are the ranks of the gang's most numerous shape, the first of equal ones: segments are about these.
func mainRanks(g *topology.Gang) []int {
	ranks := make([][]int, len(g.Shapes))
	best := 0
	for rank, m := range g.Members {
		ranks[m.Shape] = append(ranks[m.Shape], rank)
	}
	for shape := range ranks {
		if len(ranks[shape]) > len(ranks[best]) {
			best = shape
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	return ranks[best]
}

// on are the nodes of some ranks, of those that have one.
func (s *start) on(ranks []int) []int {
	nodes := make([]int, 0, len(ranks))
	for _, rank := range ranks {
		if rank < len(s.holds) && s.holds[rank] != nowhere {
			nodes = append(nodes, int(s.holds[rank]))
		}
	}
	return nodes
}
