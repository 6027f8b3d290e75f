package schedperf

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable prints the records, grouped by workload in their order, and below each pair Lockstep's figures as a
// multiple of the native ones. A figure marked with < or > is a bound: see LastBound.
func WriteTable(out io.Writer, records []Record) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells []string) {
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")+"\t") // the writer retains its error for Flush
	}
	var native Record
	last := ""
	for _, r := range records {
		if r.Workload != last {
			last = r.Workload
			_ = table.Flush() // the columns begin anew
			_, _ = fmt.Fprintln(table, r.Workload)
			row(
				[]string{
					"",
					"runs",
					"pods/s",
					"s",
					"upstream's pods/s",
					"attempts",
					"faults",
					"attempt ms mean",
					"p99",
					"algorithm ms mean",
					"p99",
					"CPU ms/pod",
					"of it scheduler",
					"heap MB",
				},
			)
		}
		row(append([]string{string(r.Profile), strconv.Itoa(r.Runs)}, cells(r.Figures)...))
		switch {
		case r.Profile == Native:
			native = r
		case native.Workload == r.Workload:
			row(append([]string{"ratio", ""}, ratioCells(native.Figures, r.Figures)...))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

func cells(f Figures) []string {
	out := make([]string, 0, len(f.fields()))
	for _, field := range f.fields() {
		cell := number(*field)
		if f.atLeast(field) {
			cell = ">" + cell
		}
		out = append(out, cell)
	}
	return out
}

func ratioCells(native, ours Figures) []string {
	ratio := Ratio(native, ours)
	out := make([]string, 0, len(ratio.fields()))
	for i, field := range ratio.fields() {
		cell := "-"
		below, above := native.atLeast(native.fields()[i]), ours.atLeast(ours.fields()[i])
		switch {
		case math.IsNaN(*field), below && above:
		case below:
			cell = "<" + number(*field) + "×"
		case above:
			cell = ">" + number(*field) + "×"
		default:
			cell = number(*field) + "×"
		}
		out = append(out, cell)
	}
	return out
}

// number has about three digits; whole numbers stay whole.
func number(value float64) string {
	switch {
	case value >= 100 || value == math.Trunc(value):
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

// WriteSummary prints a Markdown table with one row per workload that both profiles ran, the lowest ratio of pods/s
// first.
func WriteSummary(out io.Writer, records []Record) error {
	type pair struct {
		workload     string
		native, ours Figures
		ratio        Figures
	}
	var pairs []pair
	native := make(map[string]Figures)
	for _, r := range records {
		if r.Profile == Native {
			native[r.Workload] = r.Figures
		} else if base, ok := native[r.Workload]; ok {
			pairs = append(pairs, pair{r.Workload, base, r.Figures, Ratio(base, r.Figures)})
		}
	}
	slices.SortStableFunc(
		pairs,
		func(a, b pair) int { return cmp.Compare(a.ratio.PodsPerSecond, b.ratio.PodsPerSecond) },
	)
	lines := []string{
		"| workload | pods/s, native | ours | ratio | scheduler's CPU, ms a pod, native | ours | ratio |",
		"|---|---|---|---|---|---|---|",
	}
	for _, p := range pairs {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s× | %s | %s | %s× |", p.workload,
			number(p.native.PodsPerSecond), number(p.ours.PodsPerSecond), number(p.ratio.PodsPerSecond),
			number(p.native.SchedulerCPUPerPod), number(p.ours.SchedulerCPUPerPod), number(p.ratio.SchedulerCPUPerPod)))
	}
	if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}
