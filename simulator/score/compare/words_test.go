package compare_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// sized is a run with waits in seconds of jobs of one node (100 GPU-hours) and of gangs of more than 64 nodes (1,000
// GPU-hours), a mean wait, one by GPU-hours, and a goodput.
func sized(scheduler string, seed uint64, small, large, mean, byHours, goodput float64) measure.Scorecard {
	c := card(scheduler, seed, mean, 0.5)
	c.ByGPUHours.Wait, c.Goodput.Mean = byHours, goodput
	c.Classes = []measure.Class{
		{Name: "one node", Jobs: 90, GPUHours: 100, Wait: measure.Times{Mean: small}},
		{Name: "more than 64 nodes", Jobs: 4, GPUHours: 1000, Wait: measure.Times{Mean: large}},
	}
	return c
}

// The larger stake is named first: 100 GPU-hours times 12 min are less than 1,000 times 38 % of 10 h.
func TestTable_InWords(t *testing.T) {
	for _, c := range []struct {
		name  string
		cards []measure.Scorecard
		want  []string
	}{
		{
			"who pays, and who gains",
			[]measure.Scorecard{
				sized("lockstep", 1, 720, 22320, 900, 9000, 0.8), sized("kueue-bestfit", 1, 0, 36000, 300, 12600, 0.799),
				sized("lockstep", 2, 725, 22320, 905, 9000, 0.8), sized("kueue-bestfit", 2, 5, 36000, 305, 12600, 0.801),
				sized("lockstep", 3, 721, 22320, 901, 9000, 0.8), sized("kueue-bestfit", 3, 1, 36000, 302, 12600, 0.803),
			},
			[]string{"lockstep starts gangs of more than 64 nodes 38 % (3 h 48 min) earlier than kueue-bestfit, and jobs of one node 12 min later; " +
				"the mean wait is 10 min longer; the wait by GPU-hours is 1 h shorter; goodput is 0.1 points lower (not significant)."},
		},
		{
			"chance",
			[]measure.Scorecard{
				sized("lockstep", 1, 60, 7200, 900, 9000, 0.8), sized("random", 1, 180, 3600, 300, 7000, 0.7),
				sized("lockstep", 2, 60, 7200, 300, 9000, 0.8), sized("random", 2, 20, 9600, 800, 9600, 0.8),
			},
			[]string{"lockstep starts gangs of more than 64 nodes 10 min later than random, and jobs of one node 40 % (40 s) earlier; " +
				"the mean wait is 50 s longer; the wait by GPU-hours is 11 min 40 s longer; goodput is 5.0 points higher. " +
				"None of this is significant."},
		},
		{
			"one seed, and nothing gained",
			[]measure.Scorecard{
				sized("lockstep", 1, 60, 7200, 90, 90, 0.81), sized("random", 1, 60, 3600, 50, 90, 0.8),
				sized("same", 1, 60, 7200, 90, 90, 0.81),
			},
			[]string{
				"lockstep starts gangs of more than 64 nodes 1 h later than random, and no size earlier; the mean wait is 40 s longer; " +
					"the wait by GPU-hours is the same; goodput is 1.0 points higher. One seed proves nothing about others.",
				"lockstep starts jobs of every size when same does; the mean wait is the same; the wait by GPU-hours is the same; " +
					"goodput is the same. One seed proves nothing about others.",
			},
		},
		{
			"no classes",
			[]measure.Scorecard{card("a", 1, 100, 0.5), card("b", 1, 40, 0.5)},
			[]string{"a against b; the mean wait is 1 min longer; the wait by GPU-hours is the same; goodput is the same. " +
				"One seed proves nothing about others."},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := compare.Runs(c.cards)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, table.InWords()); diff != "" {
				t.Error(diff)
			}
			var text strings.Builder
			if err := table.WriteText(
				&text,
			); err != nil ||
				!strings.Contains(strings.Join(strings.Fields(text.String()), " "), c.want[0]) {
				t.Errorf("the text has no verdict, or %v", err)
			}
			if table.Watermark = "NOT COMPARABLE"; table.InWords() != nil {
				t.Error("what is not comparable has a verdict")
			}
		})
	}
}

// A seed without jobs of a size is left out of that size alone.
func TestTable_Classes_ofSomeSeeds(t *testing.T) {
	cards := []measure.Scorecard{
		sized(
			"a",
			1,
			10,
			100,
			0,
			0,
			0,
		),
		sized("b", 1, 20, 300, 0, 0, 0),
		sized("a", 2, 30, 0, 0, 0, 0),
		sized("b", 2, 60, 0, 0, 0, 0),
	}
	for i := range cards[2:] {
		cards[2+i].Classes = cards[2+i].Classes[:1]
	}
	table, err := compare.Runs(cards)
	if err != nil {
		t.Fatal(err)
	}
	small, large := table.Classes[0], table.Classes[1]
	if small.Wait.Means[0] != 20 || small.Wait.Against[0].Mean != 20 || small.Wait.Against[0].Pairs != 2 {
		t.Errorf("one node: %+v", small.Wait)
	}
	if large.Wait.Means[0] != 100 || large.Wait.Against[0].Mean != 200 || large.Wait.Against[0].Pairs != 1 ||
		large.GPUHours != 1000 {
		t.Errorf("large gangs: %+v", large)
	}
}
