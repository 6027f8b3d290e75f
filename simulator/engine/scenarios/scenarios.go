// Package scenarios has small scenes, each of which shows one thing that an engine has to get right. Tests of engines play them all,
// and compare what they are told.
package scenarios

import (
	"fmt"

	"github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/scene"
	"github.com/lockstep-project/lockstep/simulator/trace"
)

// Scenario is a scene with a name.
type Scenario struct {
	// Name tells it from the others; a word or two with dashes.
	Name string
	// About says in one sentence what it shows.
	About string
	// Scene builds it, anew each time. An error is a fault of this package.
	Scene func() (*scene.Scene, error)
}

// All are the scenarios. In each all jobs end if they get what they ask for as soon as the rules allow it, and gangs of a higher
// priority may end preemptible ones.
func All() []Scenario {
	out := orders()
	out = append(out, places()...)
	return append(out, losses()...)
}

// shows is a scenario of machines in so many racks, and of what comes.
func shows(name, about string, machines fleet.Fleet, comes trace.Trace) Scenario {
	comes.Name = name
	return Scenario{Name: name, About: about, Scene: func() (*scene.Scene, error) {
		s, err := scene.New(machines, comes, scene.Options{})
		if err != nil {
			return nil, fmt.Errorf("building the scenario %s: %w", name, err)
		}
		return s, nil
	}}
}
