package report

import (
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// tile is a number of the headline strip.
type tile struct {
	Name, Value, Unit, More, Formula string
	// Bad marks values that should not occur.
	Bad bool
}

// tiles are the headline strip of a run in time.
func tiles(card *measure.Scorecard) []tile {
	unit := func(text string) (value, unit string) {
		value, unit, _ = strings.Cut(text, " ")
		return value, unit
	}
	of := func(name, definition, text, more string) tile {
		t := tile{Name: name, More: more, Formula: formula(definition)}
		t.Value, t.Unit = unit(text)
		return t
	}
	preempted := card.Preemption.GPUHours + card.Preemption.DisruptedGPUHours
	strip := []tile{
		of("Gangs started", "gangs.placed", count(card.Gangs.Placed),
			"of "+count(card.Gangs.Submitted)+"; "+count(card.Gangs.Pending)+" still wait"),
		of("GPUs in use", "utilisation.mean", percent(card.Utilization.Mean),
			"peak "+percent(card.Utilization.Peak)),
		of("Median wait", "wait_seconds.p50", span(card.Wait.P50), "mean "+span(card.Wait.Mean)),
		of("95 % waited at most", "wait_seconds.p95", span(card.Wait.P95), "longest "+span(card.Wait.Max)),
		of("Wait by GPU-hours", "by_gpu_hours.wait_seconds_mean", span(card.ByGPUHours.Wait),
			"mean, large jobs count more"),
		of("Completion, median", "jct_seconds.p50", span(card.JCT.P50), "makespan "+span(card.Makespan)),
		of("Bounded slowdown", "bounded_slowdown.geometric_mean",
			number(card.BoundedSlowdown.GeometricMean)+" ×", "geometric mean; p95 "+number(card.BoundedSlowdown.P95)),
		of("Quality Q", "quality.mean_q", number(round(card.Quality.MeanQ, 3)),
			"1 is the best possible; p05 "+number(card.Quality.P05Q)),
		of("Split for nothing", "quality.split_domains", counted(card.Quality.Split, "gang"),
			count(card.Quality.RankInversions)+" boundaries crossed for nothing"),
		of("Fragmentation", "fragmentation.mean", percent(card.Fragmentation.Mean),
			percent(card.Fragmentation.End)+" at the end"),
		of("Largest placeable", "largest_placeable.mean", number(round(card.Largest.Mean, 0))+" GPUs",
			"mean; least "+number(card.Largest.Min)),
		of("Lost work", "preemption.gpu_hours", number(round(preempted, 1))+" GPU-h",
			count(card.Preemption.Gangs)+" preempted, "+count(card.Preemption.Disrupted)+" lost nodes"),
		of("A decision, p99", "decision_ms.p99", number(card.DecisionMS.P99)+" ms",
			"wall time; "+number(card.Throughput.PodsPerSecond)+" pods/s"),
	}
	broken := violations(card)
	rules := of("Rules broken", "violations.required_level", counted(broken, "start"),
		"partial, level, NVLink, devices, capacity")
	rules.Bad = broken > 0
	return append(strip, rules)
}

// violations returns the number of broken rules.
func violations(card *measure.Scorecard) int {
	v := card.Violations
	return v.PartialGangs + v.RequiredLevel + v.DRA + v.DoubleBooking
}

// formula returns the definition of a number.
func formula(name string) string {
	d, ok := measure.DefinitionOf(name)
	if !ok {
		return ""
	}
	return d.Formula
}
