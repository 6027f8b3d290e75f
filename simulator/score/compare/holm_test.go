package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// spreadCards are runs of A, which waits 100 s with every seed, and of others that wait longer by these.
func spreadCards(others map[string][]float64) []measure.Scorecard {
	var cards []measure.Scorecard
	for seed := range 4 {
		cards = append(cards, card("A", uint64(seed+1), 100, 0.5))
	}
	for _, name := range []string{"B", "C", "D"} {
		for seed, more := range others[name] {
			cards = append(cards, card(name, uint64(seed+1), 100+more, 0.5))
		}
	}
	return cards
}

func cell(t *testing.T, table compare.Table, row string, other int) compare.Difference {
	t.Helper()
	for _, r := range table.Rows {
		if r.Name == row {
			return r.Against[other]
		}
	}
	t.Fatalf("no row %s", row)
	return compare.Difference{}
}

// With three degrees of freedom t is mean / (deviation / 2). B: 10, 10, 10, 12 is t = 21, p = 0.000235; C: 4, 6, 8, 10
// is t = 5.42, p = 0.0123; D: 1, 2, 4, 6 is t = 2.93, p = 0.0610 (tables of Student's t). Holm multiplies them by 3, 2
// and 1.
func TestTable_Corrected(t *testing.T) {
	table, err := compare.Runs(
		spreadCards(map[string][]float64{"B": {10, 10, 10, 12}, "C": {4, 6, 8, 10}, "D": {1, 2, 4, 6}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	const wait = "wait_seconds.mean"
	corrected := table.Corrected([]string{wait})
	for other, want := range []struct {
		p       float64
		verdict compare.Verdict
	}{{3 * 0.000235, compare.Worse}, {2 * 0.0123, compare.Worse}, {0.0610, compare.Unclear}} {
		got := cell(t, corrected, wait, other)
		if got.P == nil || math.Abs(*got.P-want.p) > want.p/100 || got.Verdict != want.verdict {
			t.Errorf("cell %d: p %v, %s; want %g, %s", other, got.P, got.Verdict, want.p, want.verdict)
		}
	}
	if before := cell(t, table, wait, 0); before.P != nil {
		t.Error("the table that was corrected has changed")
	}
	// Four times as many tests: C's p is 8 times 0.0123 now.
	all := table.Corrected([]string{wait, "wait_seconds.p50", "wait_seconds.p95", "wait_seconds.max"})
	if got := cell(t, all, wait, 1); got.Verdict != compare.Unclear && *got.P > 0.05 {
		t.Errorf("among more tests: %+v", got)
	}
	// C alone is the family: its p is its own, and the others' cells are not touched.
	one := table.CorrectedFor(func(row, scheduler string) bool { return row == wait && scheduler == "C" })
	if got := cell(t, one, wait, 1); got.P == nil || math.Abs(*got.P-0.0123) > 0.0002 || got.Verdict != compare.Worse {
		t.Errorf("alone: %+v", got)
	}
	if got := cell(t, one, wait, 0); got.P != nil {
		t.Errorf("a cell of no test: %+v", got)
	}
}

// D has played two seeds of four: it is compared by these, and a note says so. That a scheduler has seeds which the
// first has not is refused.
func TestUneven(t *testing.T) {
	cards := spreadCards(map[string][]float64{"B": {1, 1, 1, 3}, "D": {5, 7}})
	if _, err := compare.Runs(cards); err == nil || !strings.Contains(err.Error(), "the seeds differ") {
		t.Errorf("Runs: %v", err)
	}
	table, err := compare.Uneven(cards)
	if err != nil {
		t.Fatal(err)
	}
	if got := cell(t, table, "wait_seconds.mean", 1); got.Mean != 6 || got.Pairs != 2 {
		t.Errorf("D: %+v", got)
	}
	if got := cell(t, table, "wait_seconds.mean", 0); got.Mean != 1.5 || got.Pairs != 4 {
		t.Errorf("B: %+v", got)
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "D has played the seeds 1 2 only") {
		t.Errorf("notes: %s", notes)
	}
	if _, err := compare.Uneven(
		append(cards, card("B", 9, 1, 1)),
	); err == nil ||
		!strings.Contains(err.Error(), "seeds differ") {
		t.Errorf("a seed of which there is nothing to compare with: %v", err)
	}
}

// A bound stands below the schedulers, where one is known.
func TestTable_Bounded(t *testing.T) {
	table, err := compare.Runs(spreadCards(map[string][]float64{"B": {1, 1, 1, 3}}))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := table.Bounded(map[string]float64{"wait_seconds.mean": 42}).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\nbound                     42\n") {
		t.Errorf("no bound in\n%s", text.String())
	}
}
