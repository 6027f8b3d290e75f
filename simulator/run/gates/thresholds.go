package gates

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// columns is the number of fields of a line.
const columns = 3

// Read reads committed figures: a line each, of a gate, a metric and a value. Empty lines and comments (#) are skipped.
// An error names the line.
func Read(from io.Reader, file string) ([]Figure, error) {
	var out []Figure
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		value, err := math.NaN(), error(nil)
		if len(fields) == columns {
			value, err = strconv.ParseFloat(fields[2], 64)
		}
		if err != nil || math.IsNaN(value) {
			return nil, badinput.At(file, n, fmt.Sprintf("%q is not a gate, a metric and a number", lines.Text()),
				"write the file anew with make gates GATES=-rewrite")
		}
		out = append(out, Figure{fields[0], fields[1], value})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return out, nil
}

// Write writes figures as Read reads them.
func Write(to io.Writer, figures []Figure) error {
	before := ""
	for _, f := range figures {
		if f.Gate != before && before != "" {
			if _, err := fmt.Fprintln(to); err != nil {
				return fmt.Errorf("writing figures: %w", err)
			}
		}
		before = f.Gate
		if _, err := fmt.Fprintf(to, "%-12s %-32s %s\n", f.Gate, f.Metric, number(f.Value)); err != nil {
			return fmt.Errorf("writing figures: %w", err)
		}
	}
	return nil
}

// number prints four decimals of values up to one, and one of larger ones.
func number(v float64) string {
	decimals := 1
	if math.Abs(v) <= 1 {
		decimals = 4
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Difference compares a figure with the committed one.
type Difference struct {
	Figure
	Committed float64
	// Missing is set if one of the two figures is missing.
	Missing bool
}

// Compare returns the differences of all figures, in the order of the new ones. Committed figures that no longer exist
// are last.
func Compare(committed, figures []Figure) []Difference {
	var out []Difference
	left := slices.Clone(committed)
	for _, f := range figures {
		at := slices.IndexFunc(left, func(c Figure) bool { return c.Gate == f.Gate && c.Metric == f.Metric })
		if at < 0 {
			out = append(out, Difference{Figure: f, Missing: true})
			continue
		}
		out = append(out, Difference{Figure: f, Committed: left[at].Value})
		left = slices.Delete(left, at, at+1)
	}
	for _, f := range left {
		out = append(out, Difference{Figure: Figure{f.Gate, f.Metric, math.NaN()}, Committed: f.Value, Missing: true})
	}
	return out
}

// worse returns the amount by which the figure is worse than committed, negative if it is better.
func (d Difference) worse() float64 {
	if better(d.Metric) == measure.Higher {
		return d.Committed - d.Value
	}
	return d.Value - d.Committed
}

// Fails reports whether the figure is worse than committed by more than its tolerance, or one of the two is missing.
func (d Difference) Fails() bool {
	may := toleranceOf(d.Metric)
	return d.Missing || d.worse() > max(may.part*math.Abs(d.Committed), may.amount)
}

// Changed reports whether the figure is printed differently from the committed one.
func (d Difference) Changed() bool { return d.Missing || number(d.Value) != number(d.Committed) }

// String returns a line: the committed value, the new value, and whether that fails.
func (d Difference) String() string {
	verdict := "better"
	switch {
	case d.Missing:
		verdict = "FAILS: in one of the two only"
	case d.Fails():
		verdict = "FAILS"
	case d.worse() > 0:
		verdict = "worse, within the tolerance"
	}
	return fmt.Sprintf("%-12s %-32s %10s -> %10s  %+6.1f %%  %s",
		d.Gate, d.Metric, number(d.Committed), number(d.Value), d.relative(), verdict)
}

// relative returns the change in per cent of the committed value, 0 if none is printed.
func (d Difference) relative() float64 {
	if d.Committed == 0 || !d.Changed() {
		return 0
	}
	const hundred = 100
	return hundred * (d.Value - d.Committed) / math.Abs(d.Committed)
}
