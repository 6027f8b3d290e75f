package simulation

import (
	"io"
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/report"
)

// page writes the report of a run; there is no record of pods that share GPUs.
func page(out Outcome, record *report.Recorder) func(io.Writer) error {
	return func(w io.Writer) error { return report.Write(w, out.report(record)) }
}

// report is the outcome as its report takes it.
func (o Outcome) report(record *report.Recorder) report.Input {
	return report.Input{Card: o.Card, Series: o.Series, Outcomes: o.Jobs, Record: record}
}

// tallied returns the outcome that a tally makes of a run.
func tallied(t *measure.Tally, card measure.Scorecard) Outcome {
	return Outcome{Card: card, Jobs: t.Outcomes(), Series: t.Series()}
}

// comparisonFile is the name of the page about a comparison, in its directory.
const comparisonFile = "compare.html"

// WriteComparison writes the page about a comparison into its directory, and returns its path. Charts are of the first
// seed.
func WriteComparison(dir string, table compare.Table, outcomes []Outcome) (string, error) {
	comparison := report.Comparison{Table: table}
	for _, outcome := range outcomes {
		if len(outcome.Jobs) > 0 {
			comparison.Runs = append(comparison.Runs, outcome.report(nil))
		}
	}
	path := filepath.Join(dir, comparisonFile)
	return path, capture.Publish(path, func(w io.Writer) error { return report.WriteComparison(w, comparison) })
}

// Cards are the scorecards of outcomes.
func Cards(outcomes []Outcome) []measure.Scorecard {
	cards := make([]measure.Scorecard, len(outcomes))
	for i, outcome := range outcomes {
		cards[i] = outcome.Card
	}
	return cards
}
