package uncontrolled

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

// Course is the outcome of a plan in one of the two worlds.
type Course struct {
	// Fates are those of the gangs, in the order of the plan.
	Fates []Fate
	// Held are the GPU-seconds that gangs held within Window, Fleet those that there are.
	Held, Fleet float64
	// Evictions is the number of runs that ended before their time.
	Evictions int
}

// Fate is the outcome of a gang.
type Fate struct {
	// Submitted, Started and Ended are since the beginning: its submission, its first start (all members are bound),
	// and its end. Started and Ended are negative for a gang that did not start or end.
	Submitted, Started, Ended time.Duration
	// Small is set for a gang of one node without a deadline: it fits into the room that larger ones leave.
	Small bool
	// Nodes are those of its first start, by rank.
	Nodes []string
}

// awaited returns a gang's fate as known at its submission.
func awaited(g rerun.Gang) Fate {
	return Fate{
		Submitted: g.Submit,
		Started:   never,
		Ended:     never,
		Small:     g.Members == 1 && g.Deadline == 0 && g.Priority == 0,
	}
}

// Wait returns the time from the submission to the first start.
func (f Fate) Wait() time.Duration { return f.Started - f.Submitted }

// Completion returns the time from the submission to the end.
func (f Fate) Completion() time.Duration { return f.Ended - f.Submitted }

// never is the instant of an event that did not happen.
const never = time.Duration(-1)

// Observed returns the course of a plan on real components, as a watcher saw it. begin is the instant of the first
// submission, fleet the number of GPUs.
func Observed(plan Plan, begin time.Time, fleet int64, runs []rerun.Run) Course {
	c := Course{Fleet: float64(fleet) * Window.Seconds()}
	for _, g := range plan.Gangs {
		fate := awaited(g)
		for _, run := range runs {
			if run.Gang != g.Name || run.First.IsZero() {
				continue
			}
			if run.Attempt > 0 {
				c.Evictions++
			}
			if !run.Bound.IsZero() && fate.Started == never {
				fate.Started, fate.Nodes = run.Bound.Sub(begin), run.Nodes
			}
			if !run.Free.IsZero() {
				fate.Ended = run.Free.Sub(begin)
			}
			for _, stay := range run.Stays {
				c.Held += held(g.GPUs, since(begin, stay.From), since(begin, stay.To))
			}
		}
		c.Fates = append(c.Fates, fate)
	}
	return c
}

func since(begin, at time.Time) time.Duration {
	if at.IsZero() {
		return never
	}
	return at.Sub(begin)
}

// held returns the GPU-seconds within Window of accelerators that are held from one instant to another, either never if
// it was not seen.
func held(gpus int, from, to time.Duration) float64 {
	if from == never {
		return 0
	}
	if to == never || to > Window {
		to = Window
	}
	return float64(gpus) * max(to-max(from, 0), 0).Seconds()
}

// Unfinished returns the number of gangs that did not end.
func (c Course) Unfinished() int {
	n := 0
	for _, f := range c.Fates {
		if f.Started == never || f.Ended == never {
			n++
		}
	}
	return n
}

// times sums up a duration of the gangs that ended.
func (c Course) times(of func(Fate) time.Duration) Times {
	var all []time.Duration
	for _, f := range c.Fates {
		if f.Started != never && f.Ended != never {
			all = append(all, of(f))
		}
	}
	return summarize(all)
}

// small is the part of the course that is about small gangs.
func (c Course) small() Course {
	c.Fates = slices.DeleteFunc(slices.Clone(c.Fates), func(f Fate) bool { return !f.Small })
	return c
}

// Times are the mean and the 95th percentile of durations.
type Times struct{ Mean, P95 time.Duration }

// summarize returns the zero value for no durations. The percentile is the smallest value with 95 % at or below it.
func summarize(all []time.Duration) Times {
	if len(all) == 0 {
		return Times{}
	}
	slices.Sort(all)
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	const percent, of = 95, 100
	return Times{Mean: sum / time.Duration(len(all)), P95: all[(len(all)*percent+of-1)/of-1]}
}
