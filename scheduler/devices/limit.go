package devices

import (
	"fmt"

	"github.com/lockstep-project/lockstep/topology"
)

// limit bounds the members of each domain and of each node.
type limit struct {
	Spread  topology.Spread
	PerNode int
}

// limited adds to the gang's own limits that of a ComputeDomain, which connects only so many nodes of one clique. It
// changes nothing where cliques are no larger, or the gang is not. Limits at other levels that cannot be combined with
// it are refused.
func limited(asked Asked, connects int) (limit, error) {
	g := asked.Gang
	own := limit{g.Spread, g.PerNode}
	tree := asked.Ledger.Tree
	clique, ok := tree.Level(topology.LabelClique)
	if !ok || connects <= mostInDomain || largest(tree, clique) <= mostInDomain {
		return own, nil
	}
	most := mostInDomain
	if g.Segment.Size > 0 {
		segments, known := tree.Level(g.Segment.Level)
		if !known {
			return own, nil // the decision says so
		}
		if most = mostInDomain / g.Segment.Size; segments < clique || most == 0 {
			return own, fmt.Errorf(
				"%w: %w; segments of %d in one %s cannot be kept apart, ask for segments of at most %d in one clique",
				ErrClaims,
				errLimit,
				g.Segment.Size,
				g.Segment.Level,
				mostInDomain,
			)
		}
	}
	at, known := tree.Level(g.Spread.Level)
	switch {
	case g.Spread.Max == 0:
	case !known:
		return own, nil // the decision says so
	case at == clique:
		most = min(most, g.Spread.Max)
	case at == len(tree.Levels()) && g.Segment.Size == 0: // the same as a limit for each node
		if own.PerNode == 0 || g.Spread.Max < own.PerNode {
			own.PerNode = g.Spread.Max
		}
	default:
		return own, fmt.Errorf(
			"%w: %w; %d per %s cannot be kept together with that, leave it out or ask for it per clique",
			ErrClaims,
			errLimit,
			g.Spread.Max,
			g.Spread.Level,
		)
	}
	own.Spread = topology.Spread{Max: most, Level: topology.LabelClique}
	return own, nil
}

// largest returns the number of nodes of a level's largest domain.
func largest(tree *topology.Tree, level int) int {
	nodes, most := map[string]int{}, 0
	for i := range tree.Len() {
		if domain, ok := tree.Domain(i, level); ok {
			nodes[domain.String()]++
			most = max(most, nodes[domain.String()])
		}
	}
	return most
}
