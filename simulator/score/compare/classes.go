package compare

import (
	"slices"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Class compares the waits of the jobs of one size (measure.Class).
type Class struct {
	Name string `json:"name"`
	// Jobs is the number of them in the window, GPUHours their demand: means of the first scheduler's seeds.
	Jobs     float64 `json:"jobs"`
	GPUHours float64 `json:"gpu_hours"`
	// Wait is their mean wait in seconds.
	Wait Row `json:"wait_seconds_mean"`
}

// classes compares the size classes that have jobs with any seed.
func (g *group) classes() []Class {
	var out []Class
	for _, name := range measure.SizeClasses() {
		var jobs, hours []float64
		for _, seed := range g.counted(g.schedulers[0]) {
			if c := classOf(g.runs[g.schedulers[0]][seed], name); c != nil {
				jobs, hours = append(jobs, float64(c.Jobs)), append(hours, c.GPUHours)
			}
		}
		if len(jobs) == 0 {
			continue
		}
		c := Class{Name: name}
		c.Jobs, _ = spread(jobs)
		c.GPUHours, _ = spread(hours)
		c.Jobs, c.GPUHours = measure.Tidy(c.Jobs), measure.Tidy(c.GPUHours)
		c.Wait = g.compared(measure.Definition{
			Name:    "classes." + name + ".wait_seconds.mean",
			Title:   "mean wait, " + name,
			Unit:    "s",
			Better:  measure.Lower,
			Formula: "Mean wait of the window's jobs of this size.",
		}, func(card *measure.Scorecard) (float64, bool) {
			if of := classOf(card, name); of != nil {
				return of.Wait.Mean, true
			}
			return 0, false
		})
		out = append(out, c)
	}
	return out
}

// classOf returns a class of a run by its name, nil if it has no jobs.
func classOf(card *measure.Scorecard, name string) *measure.Class {
	at := slices.IndexFunc(card.Classes, func(c measure.Class) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &card.Classes[at]
}
