package compare_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// TestGolden prints tables as people read them: of some runs with gangs left waiting, and of runs of openb.
func TestGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/tables", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		var cards []measure.Scorecard
		switch d.Cmd {
		case "gangs":
			cards = []measure.Scorecard{
				card("lockstep", 1, 312.44, 0.912),
				card("kueue-bestfit", 1, 401.2, 0.911),
				card("random", 1, 280, 0.7),
				card(
					"lockstep",
					2,
					1245.1,
					0.93,
				),
				card("kueue-bestfit", 2, 1300.75, 0.935),
				card("random", 2, 12345.6, 0.71),
				card(
					"lockstep",
					3,
					18,
					0.42,
				),
				card("kueue-bestfit", 3, 96.5, 0.42),
				card("random", 3, 1_234_567.8, 0.401),
			}
			cards[1].Gangs.Pending, cards[7].Gangs.Pending = 2, 1
			cards[0].Notes, cards[0].Synthetic = []string{"quick: the first 1000 of 82247 jobs"}, true
		case "openb":
			for seed, at := range [][]float64{{95.2, 95.3, 86.1, 87.2}, {95.4, 95.6, 86.3, 87}} {
				for i, policy := range []string{"fgd", "random"} {
					c := card(policy, uint64(42+seed), 0, 0)
					c.AllocationAtArrival = map[string]float64{"100": at[2*i], "130": at[2*i+1]}
					cards = append(cards, c)
				}
			}
		default:
			d.Fatalf(t, "there is no %s", d.Cmd)
		}
		table, err := compare.Runs(cards)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := table.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		return text.String()
	})
}
