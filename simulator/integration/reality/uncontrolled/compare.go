package uncontrolled

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

// Comparison compares replays with real components.
type Comparison struct {
	Seed uint64
	// Discipline is that of the queue in both worlds, Engine the simulator's engine.
	Discipline, Engine string
	// Startup is the simulator's input.
	Startup Startup
	// Observed, Plain and Spread are figures of the run, of the replay of the list, and of the replays of the list with
	// Plan.Jitter.
	Observed, Plain Figures
	Spread          []Figures
	// SameNodes and SameDomains are the numbers of gangs of the plain replay on the same nodes at their first start,
	// and in the same racks.
	SameNodes, SameDomains int
	// Apart is the mean difference between the two waits of a gang, whatever its sign.
	Apart time.Duration
}

// Figures sum up a course.
type Figures struct {
	Waits, Completions Times
	// SmallWaits are those of small gangs.
	SmallWaits Times
	// Utilization is the percentage of the fleet's GPUs that gangs held on average within Window.
	Utilization float64
	// Evictions is the number of runs that ended before their time, Unfinished that of gangs that did not end.
	Evictions, Unfinished int
}

// Figures sums the course up.
func (c Course) Figures() Figures {
	return Figures{
		Waits: c.times(Fate.Wait), Completions: c.times(Fate.Completion), SmallWaits: c.small().times(Fate.Wait),
		Utilization: 100 * c.Held / c.Fleet, Evictions: c.Evictions, Unfinished: c.Unfinished(),
	}
}

// Compare compares the course of a plan with that of its plain replay.
func Compare(machines fleet.Fleet, observed, plain Course) Comparison {
	racks := make(map[string]string)
	for _, node := range machines.Nodes {
		racks[node.Name] = node.Labels[rack]
	}
	c := Comparison{Observed: observed.Figures(), Plain: plain.Figures()}
	for i, f := range observed.Fates {
		other := plain.Fates[i]
		c.Apart += (f.Wait() - other.Wait()).Abs() / time.Duration(len(observed.Fates))
		if slices.Equal(unique(f.Nodes, nil), unique(other.Nodes, nil)) {
			c.SameNodes++
		}
		if slices.Equal(unique(f.Nodes, racks), unique(other.Nodes, racks)) {
			c.SameDomains++
		}
	}
	return c
}

// unique returns the names, or their values in to if it is set, sorted and without duplicates.
func unique(names []string, to map[string]string) []string {
	out := slices.Clone(names)
	for i, name := range out {
		if to != nil {
			out[i] = to[name]
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The bounds within which the simulator has to be.
const (
	// MostOfWait is the allowed difference of the mean and the 95th percentile of the waits, in percent.
	MostOfWait = 10.0
	// MostPoints is the allowed difference of utilization, in percentage points.
	MostPoints = 1.0
)

// Missing lists the requirements that a comparison misses, one line each; none if it meets all. The simulator's figures
// are the means of Spread.
func (c Comparison) Missing() []string {
	var out []string
	miss := func(format string, args ...any) {
		who := fmt.Sprintf("seed %d, %s, engine %s: ", c.Seed, c.Discipline, c.Engine)
		out = append(out, who+fmt.Sprintf(format, args...))
	}
	if n, m := c.Observed.Unfinished, c.Plain.Unfinished; n+m > 0 {
		miss("%d gangs did not end on the cluster, %d in the simulator", n, m)
	}
	for name, of := range quantities() {
		e := c.estimate(of)
		off, most, unit := percent(of(c.Observed), e.mean), MostOfWait, " %"
		switch name {
		case utilization:
			off, most, unit = e.mean-of(c.Observed), MostPoints, " points"
		case meanWait, longWait:
		default:
			continue
		}
		if math.Abs(off) > most {
			miss("%s differs by %+.2f%s, more than %g", name, off, unit, most)
		}
	}
	slices.Sort(out)
	return out
}

// The names of quantities.
const (
	meanWait       = "mean wait"
	longWait       = "p95 wait"
	smallWait      = "mean wait of one node without a deadline"
	meanCompletion = "mean completion"
	longCompletion = "p95 completion"
	utilization    = "utilization"
	evictions      = "evictions"
)

// quantityNames are those of all quantities in the order of tables.
func quantityNames() []string {
	return []string{meanWait, longWait, smallWait, meanCompletion, longCompletion, utilization, evictions}
}

// quantities reads the quantities that are compared; times are seconds.
func quantities() map[string]func(Figures) float64 {
	return map[string]func(Figures) float64{
		meanWait:       func(f Figures) float64 { return f.Waits.Mean.Seconds() },
		longWait:       func(f Figures) float64 { return f.Waits.P95.Seconds() },
		smallWait:      func(f Figures) float64 { return f.SmallWaits.Mean.Seconds() },
		meanCompletion: func(f Figures) float64 { return f.Completions.Mean.Seconds() },
		longCompletion: func(f Figures) float64 { return f.Completions.P95.Seconds() },
		utilization:    func(f Figures) float64 { return f.Utilization },
		evictions:      func(f Figures) float64 { return float64(f.Evictions) },
	}
}

// estimate is the mean and the standard deviation of a quantity over replays.
type estimate struct{ mean, deviation float64 }

func (c Comparison) estimate(of func(Figures) float64) estimate {
	var e estimate
	n := float64(len(c.Spread))
	for _, f := range c.Spread {
		e.mean += of(f) / n
	}
	for _, f := range c.Spread {
		e.deviation += (of(f) - e.mean) * (of(f) - e.mean) / max(n-1, 1)
	}
	e.deviation = math.Sqrt(e.deviation)
	return e
}

// percent returns the excess of the simulated value over the cluster's, in percent of the latter; 0 if that is 0.
func percent(cluster, simulated float64) float64 {
	if cluster == 0 {
		return 0
	}
	return 100 * (simulated - cluster) / cluster
}
