package report

import "github.com/lockstep-project/lockstep/simulator/score/measure"

// qualityData counts the placements of each size class by their quality.
type qualityData struct {
	Classes []string `json:"classes"`
	// Bins are names of ranges of Q, best first, and Counts has a row for each class.
	Bins   []string `json:"bins"`
	Counts [][]int  `json:"counts"`
}

// bounds are the least Q of each bin, best first. Q is a quotient of integers, so that equal costs give exactly 1.
func bounds() []float64 { return []float64{1, 0.9, 0.75, 0.5, 0} }

// quality is for gangs: a single member is always placed as well as can be.
func quality(outcomes []measure.Outcome, order []string) qualityData {
	d := qualityData{Bins: []string{"Q = 1 (the best)", "0.9 to 1", "0.75 to 0.9", "0.5 to 0.75", "below 0.5"}}
	for _, class := range order {
		counts, seen := make([]int, len(d.Bins)), false
		for i := range outcomes {
			if o := &outcomes[i]; o.Class == class && o.Members > 1 && o.Q > 0 {
				counts[bin(o.Q)]++
				seen = true
			}
		}
		if seen {
			d.Classes, d.Counts = append(d.Classes, class), append(d.Counts, counts)
		}
	}
	return d
}

// bin is the place of a quality among the bins.
func bin(q float64) int {
	for i, least := range bounds() {
		if q >= least {
			return i
		}
	}
	return len(bounds()) - 1
}
