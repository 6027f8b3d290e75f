package devices

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// sharing is the question for each choice of devices that all members share: they go where those are reached. The gang
// of the first has been chosen for it; Choose does that for the others.
func (s *Stock) sharing(ctx context.Context, asked Asked, shared []*resourcev1.ResourceClaim) ([]Asked, error) {
	if len(shared) == 0 {
		return []Asked{asked}, nil
	}
	demand := s.fitter.Demand(objects{s.manager}.Class, shared...)
	if demand.Fault != "" {
		return nil, fmt.Errorf("%w: %s", ErrClaims, demand.Fault)
	}
	choices, rules, err := s.fitter.Choices(ctx, s.fleet(), demand)
	if err != nil {
		return nil, fmt.Errorf("choosing shared devices: %w", err)
	}
	if len(choices) == 0 {
		rule := ruleElsewhere
		if len(rules) > 0 {
			rule = rules[0].Rule
		}
		return []Asked{asked.within(nil, rule)}, nil
	}
	if !gathers(asked.Gang) {
		choices = oneByOne(choices)
	}
	all := make([]Asked, len(choices))
	for i := range choices {
		all[i] = asked
		all[i].choice, all[i].apart = &choices[i], asked.Gang.Shapes
	}
	all[0].Gang = all[0].Choose(asked.Gang)
	return all, nil
}

// gathers reports whether the gang may be required on one node in place of its own level: no rule divides it, and no
// member is elsewhere.
func gathers(g topology.Gang) bool {
	return g.Segment.Size == 0 && g.Spread.Max == 0 && g.Spares.Nodes == 0 && g.Box == grid.Size{} &&
		!slices.ContainsFunc(g.Members, func(m topology.Member) bool { return m.Placed })
}

// oneByOne gives each node with devices of its own a choice.
func oneByOne(choices []dra.Choice) []dra.Choice {
	var out []dra.Choice
	for _, choice := range choices {
		if !choice.Each {
			out = append(out, choice)
			continue
		}
		for i, node := range choice.Nodes {
			out = append(out, dra.Choice{At: node, Nodes: choice.Nodes[i : i+1]})
		}
	}
	return out
}

// Choose returns the gang for this choice of devices. The bars are made anew each time: for all choices at once they
// would need memory for each pair of nodes.
func (a Asked) Choose(gang topology.Gang) topology.Gang {
	gang.Shapes = slices.Clone(a.apart)
	for i, shape := range gang.Shapes {
		gang.Shapes[i] = outside(a.Ledger.Tree, shape, a.choice.Nodes, ruleElsewhere)
	}
	if a.choice.Each {
		gang.Required = topology.LevelNode
	}
	return gang
}

// Holds reports whether the nodes of this choice that some kind of member may have hold so many members, each of the
// least demand.
func (a Asked) Holds(free []topology.Capacity, members int64) bool {
	var least topology.Capacity
	for i, shape := range a.apart {
		if i == 0 {
			least = slices.Clone(shape.Demand)
		}
		least = least[:min(len(least), len(shape.Demand))]
		for r := range least {
			least[r] = min(least[r], shape.Demand[r])
		}
	}
	for _, name := range a.choice.Nodes {
		node, known := a.Ledger.Tree.Index(name)
		if !known || !a.admits(node) {
			continue
		}
		room := members
		for r, n := range least {
			if n > 0 {
				room = min(room, at(free[node], r)/n)
			}
		}
		if members -= room; members <= 0 {
			return true
		}
	}
	return false
}

// admits reports whether some kind of member may have the node.
func (a Asked) admits(node int) bool {
	return slices.ContainsFunc(
		a.apart,
		func(of topology.Shape) bool { return of.Barred == nil || of.Barred[node] == "" },
	)
}
