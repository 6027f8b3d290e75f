package importer

import (
	"math"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// addWishes gives gangs topology wishes by published practice (Options.Wishes), those of several pods that have none of
// their own. No public trace has any, so that unpublished shares are ours.
//
//   - Where nodes are in NVLink domains, a gang of at most mostNVLink nodes that one domain could hold requires one: its job is multi-node
//     NVLink (MNNVL) and has a ComputeDomain. A larger one asks for equal segments of at most mostNVLink nodes, each in one domain, as few as
//     its size can be divided into. Operators of racks of 18 nodes do the same: 16 of 18 are scheduled, 24 nodes are 2 × 12, 64 are
//     4 × 16, and Slurm sites set --segment=16 (marin-community/marin, lib/iris; NVIDIA's and SchedMD's guides for GB200). A size that cannot
//     be divided prefers the innermost network level.
//   - Elsewhere a gang that an innermost network domain (a rack, a scalable unit) could hold requires one, one in two by a hash of its ID,
//     or else prefers one. A larger gang that a domain of the level around it could hold prefers that.
//
// A gang that no domain could hold even if nothing ran asks for nothing: its job would never start.
func (s *builder) addWishes() {
	if !s.Options.Wishes {
		return
	}
	w := newWisher(s.Scenario)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		g := &j.Gang
		if len(g.Members) < 2 || len(g.Shapes) != 1 || g.Required != "" || g.Preferred != "" || g.Segment.Size > 0 {
			continue
		}
		w.wish(g, hashed(s.Options.Seed, streamWishes, j.ID)%requireOneIn == 0)
	}
	s.Source += "; gangs ask for topology by published practice, in shares of ours"
}

// requireOneIn is the number of gangs that a network domain could hold for each one that requires one.
const requireOneIn = 2

// mostNVLink is the number of nodes of an NVLink domain of 18 that a job uses: two are spares (marin-community/marin,
// SCHEDULABLE_RACK_NODES).
const mostNVLink = 16

// wisher holds the domains of a fleet.
type wisher struct {
	ledger topology.Ledger
	// nvlink and network are the innermost levels of each kind whose domains have several nodes, around the level
	// around network; -1 for none.
	nvlink, network, around int
	levels                  []topology.Level
	// domains are the nodes of each domain, by level.
	domains [][][]int
	// most is the room of the largest domain of a level for a demand, by their key.
	most map[roomKey]int
}

type roomKey struct {
	level  int
	demand string
}

const absent = -1

func newWisher(s *scenario.Scenario) *wisher {
	w := &wisher{
		ledger: s.Ledger, nvlink: absent, network: absent, around: absent, levels: s.Ledger.Tree.Levels(),
		most: make(map[roomKey]int),
	}
	for level := range w.levels {
		domains, several := w.domainsOf(level)
		w.domains = append(w.domains, domains)
		switch {
		case !several:
		case w.levels[level].Accelerator:
			w.nvlink = level
		default:
			w.around, w.network = w.network, level
		}
	}
	return w
}

// domainsOf returns the nodes of the domains of a level, and whether one has several.
func (w *wisher) domainsOf(level int) (domains [][]int, several bool) {
	of := make(map[string]int)
	for node := range w.ledger.Len() {
		d, inside := w.ledger.Tree.Domain(node, level)
		if !inside {
			continue
		}
		at, known := of[d.String()]
		if !known {
			at = len(domains)
			of[d.String()], domains = at, append(domains, nil)
		}
		domains[at] = append(domains[at], node)
		several = several || known
	}
	return domains, several
}

// wish gives a gang of one shape its wishes; insists decides between required and preferred where both are usual.
func (w *wisher) wish(g *topology.Gang, insists bool) {
	size := len(g.Members)
	switch {
	case w.nvlink != absent && size <= mostNVLink && w.holds(w.nvlink, g, size):
		g.Required = w.name(w.nvlink)
	case w.nvlink != absent && segmentOf(size) > 1 && w.holds(w.nvlink, g, segmentOf(size)):
		g.Segment = topology.Segment{Size: segmentOf(size), Level: w.name(w.nvlink)}
	case w.holds(w.network, g, size) && insists && w.nvlink == absent:
		g.Required = w.name(w.network)
	case w.holds(w.network, g, size):
		g.Preferred = w.name(w.network)
	case w.holds(w.around, g, size):
		g.Preferred = w.name(w.around)
	}
}

// segmentOf returns the largest size of at most mostNVLink that divides a gang, 1 for none but single nodes.
func segmentOf(size int) int {
	for segment := mostNVLink; segment > 1; segment-- {
		if size%segment == 0 {
			return segment
		}
	}
	return 1
}

// name returns the user's name of a level.
func (w *wisher) name(level int) string { return w.levels[level].Name }

// holds reports whether a domain of a level could hold so many members if nothing ran.
func (w *wisher) holds(level int, g *topology.Gang, members int) bool {
	if level == absent {
		return false
	}
	demand := g.Shapes[0].Demand
	key := roomKey{level, keyOf(demand)}
	most, known := w.most[key]
	if !known {
		for _, nodes := range w.domains[level] {
			most = max(most, w.room(nodes, &g.Shapes[0]))
		}
		w.most[key] = most
	}
	return members <= most
}

// room returns the number of members of a shape that some nodes hold if nothing runs.
func (w *wisher) room(nodes []int, shape *topology.Shape) int {
	sum := 0
	for _, node := range nodes {
		if node < len(shape.Barred) && shape.Barred[node] != "" {
			continue
		}
		n := int64(math.MaxInt32)
		for r, want := range shape.Demand {
			if want > 0 {
				n = min(n, w.ledger.Total[node][r]/want)
			}
		}
		sum += int(n)
	}
	return sum
}

// keyOf returns a text that is equal for equal demands.
func keyOf(demand topology.Capacity) string {
	out := make([]byte, 0, len(demand)*8)
	for _, amount := range demand {
		for shift := 0; shift < 64; shift += 8 {
			out = append(out, byte(amount>>shift))
		}
	}
	return string(out)
}
