package rerun

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is the subject of a scenario.
type Kind string

// The scenarios.
const (
	// Serial lets one gang arrive at a time, on a fleet that others leave meanwhile.
	Serial Kind = "serial"
	// Burst lets fifty gangs arrive at once, several times the capacity of the fleet.
	Burst Kind = "burst"
	// Loss is Serial, with a node under a gang that is lost now and then, and returns.
	Loss Kind = "loss"
)

// Kinds are all scenarios, in the order of tables.
func Kinds() []Kind { return []Kind{Serial, Burst, Loss} }

// Gang is a TrainJob of a plan.
type Gang struct {
	Name string
	// Members is 1 to 18, GPUs the number that each of them requests: 1, 2 or 4.
	Members, GPUs int
	// Required is set if all members have to be in one domain of Level, Segment the number of consecutive ones that
	// have to; 0 for no such wish.
	Required bool
	Segment  int
	// Level is the label of the level of wishes; empty for that of cliques.
	Level string
	// RunTime is the run time of its pods.
	RunTime time.Duration
	// Submit is the time of its submission, since the beginning; 0 where the course of the scenario decides.
	Submit time.Duration
	// Deadline is after which time from its creation the job is ended (activeDeadlineSeconds), in whole seconds; 0 for
	// none.
	Deadline time.Duration
	// Class is the name of its PriorityClass, Priority that class's value; empty and 0 for none.
	Class    string
	Priority int32
}

// Plan lists the submissions, and the events of nodes.
type Plan struct {
	Kind  Kind
	Seed  uint64
	Gangs []Gang
	// Losses are the gangs after whose placement a node is lost, by their numbers, ascending.
	Losses []int
	// Picks choose the nodes that are lost, one for each loss: any number, modulo the number of candidates.
	Picks []int
}

// shape is the size of the scenarios of a kind.
type shape struct {
	gangs, losses     int
	shortest, longest time.Duration
}

func shapeOf(kind Kind) shape {
	switch kind {
	case Burst:
		return shape{gangs: 50, shortest: 5 * time.Second, longest: 12 * time.Second}
	case Loss:
		return shape{gangs: 16, losses: 3, shortest: 10 * time.Second, longest: 20 * time.Second}
	case Serial:
	}
	return shape{gangs: 20, shortest: 8 * time.Second, longest: 20 * time.Second}
}

// stream separates the random draws here from those of other users of the same seed.
const stream = 29

// Draw makes the plan of a seed: equal seeds give equal plans on every machine.
func Draw(kind Kind, seed uint64) Plan {
	of := shapeOf(kind)
	chance := rand.New(rand.NewPCG(seed, stream))
	plan := Plan{Kind: kind, Seed: seed}
	for i := range of.gangs {
		g := drawGang(chance)
		g.Name = fmt.Sprintf("gang-%02d", i)
		span := (of.longest - of.shortest).Milliseconds()
		g.RunTime = of.shortest + time.Duration(chance.Int64N(span+1))*time.Millisecond
		plan.Gangs = append(plan.Gangs, g)
	}
	for i := range of.losses {
		apart := of.gangs / (of.losses + 1)
		plan.Losses = append(plan.Losses, (i+1)*apart+chance.IntN(2))
		plan.Picks = append(plan.Picks, chance.IntN(1<<16))
	}
	return plan
}

// drawGang draws a gang's size and wishes: of twelve, two ask for parts of nodes, four for one clique, and two of those
// that have eight members or more for segments.
func drawGang(chance *rand.Rand) Gang {
	sizes := []int{1, 1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 18}
	g := Gang{Members: sizes[chance.IntN(len(sizes))], GPUs: 4}
	switch wish := chance.IntN(12); {
	case wish < 2:
		g.GPUs = 1 + wish
	case wish < 6:
		g.Required = true
	case wish < 8 && g.Members >= 8 && g.Members%4 == 0:
		g.Segment = 4
	}
	return g
}
