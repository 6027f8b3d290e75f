package uncontrolled

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

const (
	// Fleet is the fleet of the replay: 128 machines with 8 GPUs, in 16 racks of 8. On 64 machines with half the run
	// times two replays of nearly the same list differ by nearly twice as much in utilization (standard deviations of
	// 0.4 to 1.3 points against 0.2 to 0.6), so that a bound of a point would say little.
	Fleet = "h100-128"
	// Gangs is the number of gangs of a plan.
	Gangs = 300
	// Window is the time from the first submission over which utilization is compared. The queue is never empty in its
	// second half.
	Window = 5 * time.Minute
	// Urgent is the priority of the urgent gangs.
	Urgent = 100
	// UrgentClass is the name of the PriorityClass of the urgent gangs.
	UrgentClass = "urgent"

	arrivals = 2 * time.Minute
	rack     = "fabric.topograph.run/tier-0"
	// PerNode is the number of GPUs of a machine.
	PerNode = 8
	// stream and streamJitter separate the numbers that are drawn here from those of others with the same seed.
	stream, streamJitter = 31, 32
)

// Plan is a workload.
type Plan struct {
	Seed uint64
	// Gangs are in the order of their submission.
	Gangs []rerun.Gang
}

// Draw returns the plan of a seed: equal seeds give equal plans on every machine.
//
// It is synthetic. Of 19 gangs eight have one node, four have two, one has three, three have four, two have eight and
// one has 16; run times are log-uniform from 14 to 144 s; all arrive in two minutes and ask for about seven minutes of
// the fleet. One in twenty is urgent, one in three states a deadline, and one in six of those with 2 to 8 nodes
// requires one rack.
func Draw(seed uint64) Plan {
	chance := rand.New(rand.NewPCG(seed, stream))
	submits := make([]time.Duration, Gangs)
	for i := range submits {
		submits[i] = time.Duration(chance.Int64N(arrivals.Milliseconds())) * time.Millisecond
	}
	slices.Sort(submits)
	submits[0] = 0
	plan := Plan{Seed: seed}
	for i, at := range submits {
		g := draw(chance)
		g.Name, g.Submit = fmt.Sprintf("gang-%03d", i), at
		plan.Gangs = append(plan.Gangs, g)
	}
	return plan
}

// draw draws a gang. It draws as many numbers for each, so that a change of one rule changes no other gang.
func draw(chance *rand.Rand) rerun.Gang {
	sizes := []int{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 8, 8, 16}
	const shortest, longest = 14.4, 144.0
	size, length, parts := chance.IntN(len(sizes)), chance.Float64(), chance.IntN(4)
	urgent, stated, slack, required := chance.IntN(20), chance.IntN(3), chance.IntN(600), chance.IntN(6)
	g := rerun.Gang{Members: sizes[size], GPUs: PerNode, Level: rack}
	g.RunTime = time.Duration(math.Round(shortest*math.Pow(longest/shortest, length))) * time.Second
	if g.Members == 1 && parts == 0 {
		g.GPUs = PerNode / 2
	}
	g.Required = required == 0 && g.Members > 1 && g.Members <= 8
	if urgent == 0 {
		g.Priority, g.Class = Urgent, UrgentClass
	}
	if stated == 0 { // longer than any wait: the controller ends a job at its deadline
		g.Deadline = 15*time.Minute + time.Duration(slack)*time.Second
	}
	return g
}

// Jitter returns the plan with each submission moved by up to half a second, differently for each number. A repeated
// run of real users has such differences at least, and reservations and evictions make large ones of them.
func (p Plan) Jitter(number uint64) Plan {
	const most = time.Second
	chance := rand.New(rand.NewPCG(number, streamJitter))
	p.Gangs = slices.Clone(p.Gangs)
	for i := range p.Gangs {
		g := &p.Gangs[i]
		g.Submit = max(g.Submit+time.Duration(chance.Int64N(int64(most)))-most/2, 0)
	}
	return p
}

// Calibration returns gangs for the idle cluster, so far apart that none waits for another.
func Calibration() []rerun.Gang {
	var gangs []rerun.Gang
	for i, members := range []int{1, 4, 1, 8, 2, 1, 16, 3, 1, 2, 4, 1, 2, 8, 1} {
		gangs = append(gangs, rerun.Gang{
			Name: fmt.Sprintf("calibration-%02d", i), Members: members, GPUs: PerNode, Level: rack,
			RunTime: 8 * time.Second, Submit: time.Duration(2*i) * time.Second,
		})
	}
	return gangs
}
