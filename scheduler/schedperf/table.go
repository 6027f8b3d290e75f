package schedperf

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable prints the records, grouped by workload in their order, and below each pair Lockstep's figures as a
// multiple of the native ones. What is marked with < or > is a bound: see LastBound.
func WriteTable(out io.Writer, records []Record) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells []string) {
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")+"\t") // the writer keeps its error for Flush
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
