package dra

import (
	"context"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Question is a topology question with devices in it.
type Question struct {
	Ledger topology.Ledger
	Gang   topology.Gang
	// Kinds is the number of different demands that compete. With one, and Wide unset, the numbers are exact; else they
	// are upper bounds, and the assignment of devices on the planned nodes decides.
	Kinds int
	// Wide is set if devices that a demand could use reach several nodes.
	Wide bool
	// Unknown are the nodes, in the tree's order, for which the search was cut off.
	Unknown []string
}

// Capacity adds devices to a topology question: demands[s] are the claims of members of shape s, nil for none. Each
// different demand becomes one more resource: a node has one unit per pod that it can take, and a member needs one. A
// node whose devices never serve the demand is barred with the rule; one whose devices are taken is full. The arguments
// are not changed. The error is that of the context.
func (f *Fitter) Capacity(
	ctx context.Context, fleet Fleet, l topology.Ledger, g topology.Gang, demands []*Demand,
) (Question, error) {
	q := Question{Ledger: l, Gang: g}
	q.Ledger.Free = slices.Clone(l.Free)
	q.Ledger.Total = slices.Clone(l.Total)
	q.Gang.Shapes = slices.Clone(g.Shapes)
	first := width(q)
	var kinds []*column
	for s, d := range demands {
		if d == nil || d.None() {
			continue
		}
		i := slices.IndexFunc(kinds, func(c *column) bool { return c.demand.Same(d) })
		if i < 0 {
			c, err := f.column(ctx, fleet, l.Tree, d)
			if err != nil {
				return Question{}, err
			}
			i = len(kinds)
			kinds = append(kinds, c)
			q.put(c, first+i)
		}
		kinds[i].add(&q.Gang.Shapes[s], first+i)
	}
	q.Kinds = len(kinds)
	return q, nil
}

// width returns the number of resources that the question has already.
func width(q Question) int {
	most := 0
	for _, rows := range [][]topology.Capacity{q.Ledger.Free, q.Ledger.Total} {
		for _, c := range rows {
			most = max(most, len(c))
		}
	}
	for _, s := range q.Gang.Shapes {
		most = max(most, len(s.Demand))
	}
	return most
}

// column is one demand on every node of the tree.
type column struct {
	demand      *Demand
	free, total []int64
	barred      []string
	wide        bool
	unknown     []string
}

// column fits every node with its free devices and, where nothing fits, once more as if all devices were free.
func (f *Fitter) column(ctx context.Context, fleet Fleet, tree *topology.Tree, d *Demand) (*column, error) {
	c := &column{
		demand: d, free: make([]int64, tree.Len()), total: make([]int64, tree.Len()),
		barred: make([]string, tree.Len()),
	}
	empty := Fleet{fleet.Inventory, NewLedger()}
	for i := range c.free {
		name := tree.Node(i)
		if name == "" {
			continue
		}
		now, err := f.Fit(ctx, fleet, name, d)
		if err != nil {
			return nil, err
		}
		ever, err := f.Fit(ctx, empty, name, d)
		if err != nil {
			return nil, err
		}
		c.free[i], c.total[i] = int64(now.Pods), int64(ever.Pods)
		c.wide = c.wide || ever.Wide
		switch {
		case now.Unknown:
			c.unknown = append(c.unknown, name)
			if now.Pods == 0 {
				c.barred[i] = now.Rule
			}
		case ever.Pods == 0:
			c.barred[i] = ever.Rule
		}
	}
	return c, nil
}

// put writes the column into the ledger as a resource with that index.
func (q *Question) put(c *column, resource int) {
	for i := range q.Ledger.Free {
		q.Ledger.Free[i] = with(q.Ledger.Free[i], resource, c.free[i])
		if q.Ledger.Total != nil {
			q.Ledger.Total[i] = with(q.Ledger.Total[i], resource, c.total[i])
		}
	}
	q.Wide = q.Wide || c.wide
	q.Unknown = append(q.Unknown, c.unknown...)
}

// add makes members of the shape need one of the resource.
func (c *column) add(s *topology.Shape, resource int) {
	s.Demand = with(s.Demand, resource, 1)
	barred := slices.Clone(c.barred)
	for i, rule := range s.Barred {
		if rule != "" {
			barred[i] = rule
		}
	}
	s.Barred = barred
}

// with returns the capacity with one more number at the index, zeros before it.
func with(c topology.Capacity, index int, value int64) topology.Capacity {
	longer := make(topology.Capacity, max(len(c), index+1))
	copy(longer, c)
	longer[index] = value
	return longer
}
