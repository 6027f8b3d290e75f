package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// The names of the plugins that make the stock profile's choice between equal domains one that can be had again.
const (
	orderedName = "OrderedPlacements"
	tieHighName = "PlacementTieHigh"
	tieLowName  = "PlacementTieLow"
)

// digits is the number of scores that a plugin can give, streamTies the stream of the seed from which orders are drawn.
const (
	digits     = int(fwk.MaxScore) + 1
	streamTies = 21
)

// ordersKey is the key of a cycle's order of its placements.
const ordersKey fwk.StateKey = orderedName

// order is the place of each placement, by name.
type order map[string]int

// Clone returns the order itself, which is never changed.
func (o order) Clone() fwk.StateData { return o }

// ties are the plugins, with an order of domains drawn from the seed for each cycle.
func ties(seed uint64) frameworkruntime.Registry {
	chance := rand.New(rand.NewPCG(seed, streamTies)) // repeatable randomness
	tie := func(name string, digit func(place int) int) frameworkruntime.PluginFactory {
		return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return &breaker{name, digit}, nil
		}
	}
	return frameworkruntime.Registry{
		orderedName: func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
			stock, err := topologyaware.New(ctx, args, handle, features)
			if err != nil {
				return nil, fmt.Errorf("making %s: %w", topologyaware.Name, err)
			}
			return &ordered{stock, chance}, nil
		},
		tieHighName: tie(tieHighName, func(place int) int { return place / digits }),
		tieLowName:  tie(tieLowName, func(place int) int { return place % digits }),
	}
}

// ordered is the stock generator, whose placements are ordered by name.
type ordered struct {
	stock  *topologyaware.TopologyPlacement
	chance *rand.Rand
}

var _ fwk.PlacementGeneratePlugin = (*ordered)(nil)

// Name returns the plugin's name.
func (*ordered) Name() string { return orderedName }

// GeneratePlacements asks the stock generator.
func (o *ordered) GeneratePlacements(
	ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, parent *fwk.Placement,
) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	found, status := o.stock.GeneratePlacements(ctx, state, info, parent)
	if !status.IsSuccess() || found == nil {
		return found, status
	}
	if len(found.Placements) > digits*digits {
		return nil, fwk.AsStatus(fmt.Errorf("%d domains: ties are broken between %d at most",
			len(found.Placements), digits*digits))
	}
	slices.SortFunc(found.Placements, func(a, b *fwk.Placement) int { return cmp.Compare(a.Name, b.Name) })
	places := make(order, len(found.Placements))
	for i, place := range o.chance.Perm(len(found.Placements)) {
		places[found.Placements[i].Name] = place
	}
	state.Write(ordersKey, places)
	return found, status
}

// breaker prefers later places in the order, by one digit of the place.
type breaker struct {
	name  string
	digit func(place int) int
}

var _ fwk.PlacementScorePlugin = (*breaker)(nil)

// Name returns the plugin's name.
func (b *breaker) Name() string { return b.name }

// ScorePlacement is the digit.
func (b *breaker) ScorePlacement(
	_ context.Context, state fwk.PlacementCycleState, _ fwk.PodGroupInfo, found *fwk.PodGroupAssignments,
) (int64, *fwk.Status) {
	data, err := state.GetPodGroupSchedulingCycle().Read(ordersKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading the order of placements: %w", err))
	}
	places, ok := data.(order)
	if !ok {
		return 0, fwk.AsStatus(errors.New("the order of placements is another plugin's"))
	}
	return int64(b.digit(places[found.Name])), nil
}

// PlacementScoreExtensions returns nil: scores are final.
func (*breaker) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }
