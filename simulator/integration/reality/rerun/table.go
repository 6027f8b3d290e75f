package rerun

import (
	"fmt"
	"strings"
	"time"
)

// Enough returns the requirements of the simulator that the comparisons miss: 99 of 100 gangs in the same domain, none
// overtaken, and waits that differ by no more than a second and the time that the API takes at the 95th percentile.
func Enough(all []Comparison) []string {
	var missing []string
	for _, c := range all {
		who := fmt.Sprintf("%s, seed %d", c.Kind, c.Seed)
		if c.Overtaken > 0 {
			missing = append(missing, fmt.Sprintf("%s: %d pairs of gangs start in another order", who, c.Overtaken))
		}
		if most := time.Second + c.Binding.P50; c.Waits.P95 > most {
			missing = append(missing, fmt.Sprintf("%s: waits differ by %d ms at the 95th percentile, more than %d",
				who, c.Waits.P95.Milliseconds(), most.Milliseconds()))
		}
	}
	for _, kind := range Kinds() {
		starts, same := 0, 0
		for _, c := range all {
			if c.Kind == kind {
				starts, same = starts+c.Starts, same+c.SameDomain
			}
		}
		if same*100 < starts*99 {
			missing = append(
				missing,
				fmt.Sprintf("%s: %d of %d starts are in the same domain, fewer than 99 of 100", kind, same, starts),
			)
		}
	}
	return missing
}

// Table is comparisons as people read them, in Markdown. Times are milliseconds: at the 50th and the 95th percentile,
// and the longest.
func Table(all []Comparison) string {
	var b strings.Builder
	b.WriteString("| scenario | seed | gangs | starts | same domain | same nodes | other order | wait, difference |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s | %s | %d | %s |\n", c.Kind, c.Seed, c.Gangs, c.Starts,
			percent(c.SameDomain, c.Starts), percent(c.SameNodes, c.Starts), c.Overtaken, c.Waits)
	}
	return b.String()
}

// Latencies returns the times that the API and the controllers took, in Markdown; times as in Table.
func Latencies(all []Comparison) string {
	var b strings.Builder
	b.WriteString(
		"| scenario | seed | TrainJob to whole gang | whole to first binding | whole to last binding | first to last end | loss to whole again |\n",
	)
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range all {
		again := "–"
		if c.Again.Max > 0 {
			again = c.Again.String()
		}
		fmt.Fprintf(
			&b,
			"| %s | %d | %s | %s | %s | %s | %s |\n",
			c.Kind,
			c.Seed,
			c.Making,
			c.First,
			c.Binding,
			c.Ending,
			again,
		)
	}
	return b.String()
}

// Notes are all differences, in Markdown; a sentence if there are none.
func Notes(all []Comparison) string {
	var b strings.Builder
	for _, c := range all {
		for _, line := range c.Differences {
			fmt.Fprintf(&b, "* %s, seed %d: %s\n", c.Kind, c.Seed, line)
		}
	}
	if b.Len() == 0 {
		return "No gang was elsewhere, and none started in another order.\n"
	}
	return b.String()
}

// String is the spread in milliseconds.
func (s Spread) String() string {
	return fmt.Sprintf("%d / %d / %d", s.P50.Milliseconds(), s.P95.Milliseconds(), s.Max.Milliseconds())
}

func percent(part, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of))
}
