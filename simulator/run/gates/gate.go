package gates

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Gate is one comparison. It plays the most contended stretch of its trace (simulation.QuickJobs jobs at most).
type Gate struct {
	Name    string
	Names   simulation.Names
	Options simulation.Options
}

// All returns the gates. A name ends in the share of the jobs with a deadline: all, half or none. In every gate jobs
// run slower at worse places.
func All() []Gate {
	const (
		said = 3 // deadlines are one to three times the run time
		half = 0.5
		// published are the shares of communication as they were measured.
		published = 1000
		// crowd lets so few jobs fill as large a fleet.
		crowd = 25
	)
	philly := simulation.Names{Fleet: "h100-64", Trace: "philly"}
	c1 := simulation.Names{Fleet: "c1", Trace: "acme-seren"}
	of := func(name string, names simulation.Names, load, estimates float64) Gate {
		o := simulation.Options{
			Load:      load,
			Estimates: estimates,
			Quick:     true,
			Costs:     cost.Settings{Slowdown: published},
		}
		return Gate{Name: name, Names: names, Options: o}
	}
	slowed := of("kalos-all", simulation.Names{Fleet: "c3", Trace: "acme-kalos"}, 5, said)
	divided := of("c3-half", simulation.Names{Fleet: "c3", Trace: "acme-seren"}, 1.5, said)
	divided.Options.Silent = half
	return []Gate{
		of("philly-all", philly, 1.3, said),
		of("philly-none", philly, 1.3, 0),
		of("c1-all", c1, crowd, said),
		of("c1-none", c1, crowd, 0),
		divided,
		slowed,
		of("starving-all", simulation.Names{Fleet: "h100-128", Trace: "starving-512"}, 1, said),
		of("service-all", simulation.Names{Fleet: "h100-64", Trace: "service"}, 1, 1),
	}
}

// Play plays a gate by Lockstep with seed 1 and returns its scorecard.
func (g Gate) Play(ctx context.Context, wall clock.PassiveClock) (measure.Scorecard, error) {
	in, err := simulation.Open(g.Names, g.Options)
	if err != nil {
		return measure.Scorecard{}, fmt.Errorf("gate %s: %w", g.Name, err)
	}
	out, err := in.Run(
		ctx,
		simulation.Run{Scheduler: schedulers.Lockstep, Engine: schedulers.Direct, Seed: 1, Wall: wall},
	)
	if err != nil {
		return measure.Scorecard{}, fmt.Errorf("gate %s: %w", g.Name, err)
	}
	return out.Card, nil
}
