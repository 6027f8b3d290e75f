package uncontrolled

import (
	"fmt"
	"strings"
)

// Table returns comparisons in Markdown, a row for each quantity of each comparison. Times are seconds.
func Table(all []Comparison) string {
	var b strings.Builder
	b.WriteString(
		"| discipline | seed | quantity | real | simulated | difference | replay of the list |\n|---|---:|---|---:|---:|---:|---:|\n",
	)
	for _, c := range all {
		for _, name := range quantityNames() {
			of := quantities()[name]
			e, actual := c.estimate(of), of(c.Observed)
			unit, difference := " s", fmt.Sprintf("%+.1f %%", percent(actual, e.mean))
			switch name {
			case utilization:
				unit, difference = " %", fmt.Sprintf("%+.2f points", e.mean-actual)
			case evictions:
				unit, difference = "", fmt.Sprintf("%+.0f", e.mean-actual)
			}
			fmt.Fprintf(
				&b,
				"| %s | %d | %s | %.1f%s | %.1f ± %.1f%s | %s | %.1f%s |\n",
				c.Discipline,
				c.Seed,
				name,
				actual,
				unit,
				e.mean,
				e.deviation,
				unit,
				difference,
				of(c.Plain),
				unit,
			)
		}
	}
	return b.String()
}

// Notes returns in Markdown the simulator's inputs and the places of gangs, a line for each comparison.
func Notes(all []Comparison) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(
			&b,
			"* %s, seed %d, engine %s: starts took %d ms on the idle cluster (one pod: %d ms), and %d ms passed from a submission to the "+
				"first binding. In the replay of the list %d of %d gangs are first in the same racks and %d on the same nodes; the two waits of a gang "+
				"are %.0f s apart on average.\n",
			c.Discipline,
			c.Seed,
			c.Engine,
			c.Startup.Gang.Milliseconds(),
			c.Startup.Single.Milliseconds(),
			c.Startup.Arrival.Milliseconds(),
			c.SameDomains,
			Gangs,
			c.SameNodes,
			c.Apart.Seconds(),
		)
	}
	return b.String()
}
