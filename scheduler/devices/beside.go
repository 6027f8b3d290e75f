package devices

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// errChoices is returned if a gang's devices cannot be part of the question about another gang.
var errChoices = errors.New("its members share devices of several choices")

// Pair is a question about a gang behind another one, with the devices of both in its ledger.
type Pair struct {
	Ledger topology.Ledger
	// Gang is the evaluated gang, First the one that is before it.
	Gang, First topology.Gang
	// Apart is set if both claim devices and some demand is of one of them only: it is unknown which devices both would
	// take.
	Apart bool
	asked [2]Asked
}

// Beside puts the devices into a question that the first of the queue claims: of a demand that both gangs have, a
// device that one of them gets is not left for the other. Of demands that differ each gang is counted alone, and the
// pair is apart. The error says why the first cannot be evaluated with its devices.
func (s *Stock) Beside(ctx context.Context, asked Asked, first Question) (Pair, error) {
	first.Ledger = asked.Ledger
	choices, err := s.Ask(ctx, first)
	if err != nil {
		return Pair{}, err
	}
	if len(choices) != 1 {
		return Pair{}, errChoices
	}
	before := choices[0]
	return Pair{
		Ledger: before.Ledger,
		Gang:   asked.beside(before),
		First:  before.beside(asked),
		Apart:  asked.differs(before) || before.differs(asked),
		asked:  [2]Asked{asked, before},
	}, nil
}

// beside is the gang with members that need, of each demand that the other question has too, one there as well.
func (a Asked) beside(other Asked) topology.Gang {
	gang := a.Gang
	gang.Shapes = slices.Clone(gang.Shapes)
	for i, shape := range gang.Shapes {
		own := a.demandOf(shape)
		if own == nil {
			continue
		}
		k := slices.IndexFunc(other.demands, own.Same)
		if k >= 0 {
			gang.Shapes[i].Demand = with(shape.Demand, other.first+k, 1)
		}
	}
	return gang
}

// differs reports whether the other question is about devices too, and lacks a demand of this one.
func (a Asked) differs(other Asked) bool {
	return len(other.demands) > 0 && slices.ContainsFunc(a.demands, func(d *dra.Demand) bool {
		return !slices.ContainsFunc(other.demands, d.Same)
	})
}

// demandOf returns the claims of members of the shape, nil for none.
func (a Asked) demandOf(shape topology.Shape) *dra.Demand {
	column := len(shape.Demand) - 1 - a.first
	if len(a.demands) == 0 || column < 0 {
		return nil
	}
	return a.demands[column]
}

// HoldsOf adds to the units the capacity that their departure would give back to either gang.
func (s *Stock) HoldsOf(ctx context.Context, pair Pair, units []snapshot.Unit) []snapshot.Unit {
	for _, asked := range pair.asked {
		units = s.Holds(ctx, asked, units)
	}
	return units
}
