package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

func TestRuns_OfOneSchedulerAreDistinct(t *testing.T) {
	of := func(scheduler, engine, commit string, seed uint64, wait float64) measure.Scorecard {
		c := card(scheduler, seed, wait, 1)
		c.Engine, c.Commit = engine, commit
		return c
	}
	const before, after = "0123456789abcdef", "fedcba9876543210"
	for _, tc := range []struct {
		name  string
		cards []measure.Scorecard
		want  string // the schedulers; or the fault
	}{
		{"names are enough", []measure.Scorecard{of("a", "direct", before, 1, 5), of("b", "kube", after, 1, 5)}, "a, b"},
		{
			"before a change and after it",
			[]measure.Scorecard{of("a", "direct", before, 1, 10), of("a", "direct", after, 1, 12)},
			"a (0123456789ab), a (fedcba987654)",
		},
		{
			"two engines, whatever the commit",
			[]measure.Scorecard{of("a", "direct", before, 1, 10), of("a", "kube", after, 1, 12)},
			"a (direct), a (kube)",
		},
		{
			"two engines before and after",
			[]measure.Scorecard{
				of("a", "direct", before, 1, 10), of("a", "kube", before, 1, 12),
				of("a", "direct", after, 1, 10), of("a", "kube", after, 1, 12),
			},
			"a (direct, 0123456789ab), a (kube, 0123456789ab), a (direct, fedcba987654), a (kube, fedcba987654)",
		},
		{
			"the same twice",
			[]measure.Scorecard{of("a", "direct", before, 1, 10), of("a", "direct", before, 1, 10)},
			"two runs of a with seed 1",
		},
		{
			"one scheduler, of one commit",
			[]measure.Scorecard{of("a", "direct", "", 1, 10), of("a", "direct", "", 2, 10)},
			"1 schedulers",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			given := slices.Clone(tc.cards)
			table, err := compare.Runs(compare.Distinct(tc.cards))
			switch got := strings.Join(table.Schedulers, ", "); {
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("the error is %v", err)
			case err == nil && got != tc.want:
				t.Errorf("the schedulers are %s", got)
			}
			for i := range given {
				if tc.cards[i].Scheduler != given[i].Scheduler {
					t.Errorf("the caller's run %d is now of %s", i, tc.cards[i].Scheduler)
				}
			}
		})
	}
}
