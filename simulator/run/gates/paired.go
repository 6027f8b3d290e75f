package gates

import (
	"fmt"
	"math"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
)

// Summary returns a line for each metric of several gates: the mean of its changes, each in per cent of the committed
// figure, with the half width of its 95 % interval by Student's t. The gates are the pairs.
func Summary(differences []Difference) string {
	var names []string
	of := make(map[string][]float64)
	for _, d := range differences {
		if d.Missing || d.Committed == 0 {
			continue
		}
		if of[d.Metric] == nil {
			names = append(names, d.Metric)
		}
		of[d.Metric] = append(of[d.Metric], d.relative())
	}
	var out strings.Builder
	for _, name := range names {
		if changes := of[name]; len(changes) > 1 {
			mean, half := paired(changes)
			fmt.Fprintf(&out, "%-45s %+6.1f %% ± %.1f in %d gates\n", name, mean, half, len(changes))
		}
	}
	return out.String()
}

// paired returns the mean of differences and the half width of its 95 % interval.
func paired(differences []float64) (mean, half float64) {
	n := float64(len(differences))
	for _, d := range differences {
		mean += d / n
	}
	var squares float64
	for _, d := range differences {
		squares += (d - mean) * (d - mean)
	}
	return mean, compare.Quantile(len(differences)-1) * math.Sqrt(squares/(n-1)/n)
}
