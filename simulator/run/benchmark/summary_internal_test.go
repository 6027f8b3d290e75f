package benchmark

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
)

// handMade reads tables of figures: a line "comparison NAME" and then one for each scheduler, Lockstep first, with the
// figures of the criteria in their order and in the units of the document. A figure of another scheduler may end in +,
// -, (+) or (-), the verdict about it.
func handMade(t *testing.T, text string) []comparison {
	t.Helper()
	var out []comparison
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == "comparison" {
			c := comparison{entry: entry{name: words[1]}}
			for _, criterion := range criteria.All() {
				c.table.Rows = append(c.table.Rows, compare.Row{Name: criterion.Row})
			}
			out = append(out, c)
			continue
		}
		table := &out[len(out)-1].table
		table.Schedulers = append(table.Schedulers, words[0])
		for i, criterion := range criteria.All() {
			digits := strings.TrimRight(words[i+1], "+-()")
			value, err := strconv.ParseFloat(digits, 64)
			if err != nil {
				t.Fatal(err)
			}
			row := &table.Rows[i]
			row.Means = append(row.Means, value/criterion.Scale)
			if len(row.Means) > 1 {
				row.Against = append(row.Against, compare.Difference{
					Mean: row.Means[len(row.Means)-1] - row.Means[0], Pairs: 5,
					Verdict: map[string]compare.Verdict{
						"+": compare.Better, "-": compare.Worse, "(+)": compare.BetterOnce, "(-)": compare.WorseOnce, "": compare.Unclear,
					}[words[i+1][len(digits):]],
				})
			}
		}
	}
	for i := range out {
		out[i].targets = out[i].table
	}
	return out
}

// TestSummary holds the words that the document opens with against tables that were made by hand.
func TestSummary(t *testing.T) {
	datadriven.RunTest(t, "testdata/summary", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		if d.Cmd != "summary" {
			d.Fatalf(t, "there is no %s", d.Cmd)
		}
		var b strings.Builder
		document := Document{comparisons: handMade(t, d.Input)}
		document.summary(&b)
		return b.String()
	})
}

// Rivals play by one of three roles at most, and every baseline by one: none is left out because its name is new.
func TestRoles(t *testing.T) {
	r := roles()
	if len(r.Rivals) < 10 || len(r.Greedy) < 5 || len(r.Foresight) != 2 {
		t.Errorf("roles are %+v", r)
	}
	for _, name := range r.Rivals {
		if strings.HasPrefix(name, "lockstep") {
			t.Errorf("%s is a rival of Lockstep", name)
		}
	}
	if text := fmt.Sprint(r.Greedy); text != "[kueue-bestfit random first-fit least-allocated most-allocated]" {
		t.Errorf("greedy are %s", text)
	}
}
