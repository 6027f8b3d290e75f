package schedulers

import (
	"fmt"
	"slices"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
)

// The names of those that are no baseline.
const (
	// Lockstep is the product: its decision core (engine direct), or its plugins in the real kube-scheduler (engine
	// kube).
	Lockstep = "lockstep"
	// NativeTAS is kube-scheduler's own profile with its gang scheduling and topology-aware placement.
	NativeTAS = "native-tas"
	// Optimum is another name of lockstep:perfect.
	Optimum = "optimum"
)

// The names of the engines.
const (
	Direct = "direct"
	Kube   = "kube"
)

// MostNative is the largest number of nodes of a fleet for NativeTAS: it simulates each domain in turn.
const MostNative = 576

// Scheduler is one of them, with its description.
type Scheduler struct {
	Name string
	// Engine plays it, On is the engine's name.
	Engine engine.Engine
	On     string
	// Source is the model of the scheduler, Discipline names the jobs that may pass the first of its queue, and TieRule
	// is its choice between equally good places.
	Source, Discipline, TieRule string
}

// Names lists all, in the order of reports.
func Names() []string {
	return slices.Concat([]string{Lockstep, NativeTAS}, baseline.Names(), []string{Optimum}, Variants())
}

// Ask names the requested scheduler and its inputs.
type Ask struct {
	// Name is one of Names, or Lockstep's with a number (see Choices), Engine the name of an engine; empty for the one
	// that the scheduler usually has.
	Name, Engine string
	// Nodes is the number of nodes of the fleet, Seed the seed for schedulers that choose at random.
	Nodes int
	Seed  uint64
}

// Open makes a scheduler. A name that is not there, an engine that the scheduler does not have, or a fleet of too many
// nodes for it, are bad input. The clock measures the cost of decisions.
func Open(ask Ask, wall clock.PassiveClock) (Scheduler, error) {
	switch {
	case ask.Engine != "" && ask.Engine != Direct && ask.Engine != Kube:
		return Scheduler{}, &badinput.Error{
			Where: "--engine " + ask.Engine, What: "there is no such engine", Mend: "use " + Direct + " or " + Kube,
		}
	case !exists(ask.Name):
		return Scheduler{}, &badinput.Error{
			What: fmt.Sprintf("there is no scheduler %q", ask.Name),
			Mend: "use " + Choices(),
		}
	case ask.Name == NativeTAS || ask.Name == Lockstep && ask.Engine == Kube:
		return stepped(ask, wall)
	case ask.Engine == Kube:
		return Scheduler{}, &badinput.Error{
			What: ask.Name + " is no plugin of kube-scheduler, so the engine " + Kube + " cannot play it",
			Mend: "leave out --engine",
		}
	}
	if of, ok := variantOf(ask.Name); ok {
		return product(ask.Name, of, wall), nil
	}
	return placement(ask, wall)
}

// exists reports whether there is a scheduler of a name.
func exists(name string) bool {
	_, isVariant := variantOf(name)
	return isVariant || slices.Contains(Names(), name)
}

// placement is a baseline with the discipline that it has in the field.
func placement(ask Ask, wall clock.PassiveClock) (Scheduler, error) {
	about, err := baseline.Describe(ask.Name)
	if err != nil {
		return Scheduler{}, err
	}
	policy, err := baseline.New(ask.Name, ask.Seed)
	if err != nil {
		return Scheduler{}, err
	}
	o := direct.Options{Policy: policy, Discipline: direct.Greedy}
	for _, d := range []direct.Discipline{direct.Strict, direct.Window, direct.Evicting} {
		if d.String() == about.Discipline {
			o.Discipline = d
		}
	}
	return Scheduler{
		Name: ask.Name, On: Direct, Engine: direct.NewEngine(o, wall.Now),
		Source: about.Source, Discipline: about.Discipline, TieRule: about.TieRule,
	}, nil
}
