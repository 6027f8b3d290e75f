// Package scenarios has small scenarios; each of them shows one thing that an engine has to get right. Tests of engines
// play them all, and compare the reports.
package scenarios

import (
	"fmt"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Case is a scenario with a name.
type Case struct {
	// Name identifies the case; a word or two with dashes.
	Name string
	// About describes the case in one sentence.
	About string
	// Build returns a new scenario each time. An error is a fault of this package.
	Build func() (*scenario.Scenario, error)
}

// All lists the cases. In each, all jobs end if they receive their requested resources as soon as the rules allow it,
// and gangs of a higher priority may end preemptible ones.
func All() []Case {
	out := orders()
	out = append(out, graces()...)
	out = append(out, places()...)
	return append(out, losses()...)
}

// shows returns a case of machines in so many racks, and of the jobs that arrive.
func shows(name, about string, machines fleet.Fleet, comes trace.Trace) Case {
	comes.Name = name
	return Case{Name: name, About: about, Build: func() (*scenario.Scenario, error) {
		s, err := importer.New(machines, comes, scenario.Options{})
		if err != nil {
			return nil, fmt.Errorf("building the scenario %s: %w", name, err)
		}
		return s, nil
	}}
}
