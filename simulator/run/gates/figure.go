package gates

import (
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Figure is a number of a scorecard.
type Figure struct {
	// Gate is a gate's name. Metric is wait:CLASS, decisions or the name of a measure.Definition.
	Gate, Metric string
	Value        float64
}

const (
	// wait begins the metrics of size classes: the mean wait in seconds.
	wait = "wait:"
	// decisions counts the evaluations.
	decisions = "decisions"
)

// metrics returns the definitions that gates hold, the most important first.
func metrics() []string {
	return []string{
		"goodput.mean", "by_gpu_hours.wait_seconds_mean", "wait_seconds.mean", "wait_seconds.max",
		"preemption.gpu_hours", "quality.mean_q",
	}
}

// FiguresOf returns the figures of a gate's scorecard, in the order in which they are listed.
func FiguresOf(gate string, card measure.Scorecard) []Figure {
	var out []Figure
	for _, name := range metrics() {
		if d, ok := measure.DefinitionOf(name); ok {
			out = append(out, Figure{gate, name, d.Of(card)})
		}
	}
	out = append(out, Figure{gate, decisions, float64(card.DecisionMS.Count)})
	for _, class := range card.Classes {
		out = append(out, Figure{gate, wait + strings.ReplaceAll(class.Name, " ", "-"), class.Wait.Mean})
	}
	return out
}

// better returns which of two values of a metric is the better one.
func better(metric string) measure.Direction {
	if d, ok := measure.DefinitionOf(metric); ok && d.Better != measure.Neither {
		return d.Better
	}
	return measure.Lower
}

// tolerance bounds the amount by which a figure may be worse than committed: a part of it, and an amount in its unit.
type tolerance struct{ part, amount float64 }

// toleranceOf returns that of a metric. Means of all jobs are held closely; longest waits and single classes move with
// a few jobs.
func toleranceOf(metric string) tolerance {
	narrow := tolerance{part: 0.02, amount: 10}
	wide := tolerance{part: 0.1, amount: 60}
	switch {
	case strings.HasPrefix(metric, wait), metric == "wait_seconds.max", metric == decisions:
		return wide
	case better(metric) == measure.Higher: // a part of one
		return tolerance{amount: 0.003}
	}
	return narrow
}
