package kube

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
)

// Profile selects the scheduler that plays.
type Profile string

const (
	// Lockstep is the shipped profile, with its plugins.
	Lockstep Profile = "lockstep"
	// Native is the stock profile with the gates GenericWorkload and TopologyAwareWorkloadScheduling.
	Native Profile = "native-tas"
)

// Options configure how an engine plays.
type Options struct {
	Profile Profile
	// Learns has the scheduler learn run times (GangPlacementArgs.LearnRunTimes), as direct.Options.Learns; of Lockstep
	// only.
	Learns bool
	// Discipline is that of package config in which Lockstep's entities start, "" for the shipped profile's.
	Discipline string
	// Clock measures the cost of decisions; no event depends on it.
	Clock clock.PassiveClock
}

// New makes an engine. It sets the feature gates of the process, which are the same for all profiles; two engines may
// play at once, but no other code of the process may want other gates.
func New(o Options) (engine.Engine, error) {
	if o.Profile != Lockstep && o.Profile != Native {
		return nil, &badinput.Error{
			What: fmt.Sprintf(
				"no scheduler profile %q",
				o.Profile,
			),
			Mend: fmt.Sprintf("name %s or %s", Lockstep, Native),
		}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := stepped.SetGates(); err != nil {
		return nil, err
	}
	return &player{o}, nil
}

type player struct{ options Options }

// Run implements engine.Engine. The context is checked between instants.
func (p *player) Run(ctx context.Context, s *scenario.Scenario, w engine.Watcher) error {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer cancel()
	objects, err := importer.ObjectsOf(s)
	if err != nil {
		return err
	}
	world, err := newWorld(ctx, s, objects, w, p.options)
	if err != nil {
		return err
	}
	defer world.close()
	return world.play(ctx)
}
