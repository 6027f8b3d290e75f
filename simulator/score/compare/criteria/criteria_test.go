package criteria_test

import (
	"math/rand/v2"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
)

// figures is a table with one row: the means of ours and of others, of one pair each, whose differences have these
// verdicts.
func figures(row string, schedulers []string, means []float64, verdicts ...compare.Verdict) compare.Table {
	r := compare.Row{Name: row, Means: means}
	for i, v := range verdicts {
		r.Against = append(r.Against, compare.Difference{Mean: means[i+1] - means[0], Pairs: 5, Verdict: v})
	}
	return compare.Table{Schedulers: schedulers, Rows: []compare.Row{r}}
}

func roles() criteria.Roles {
	return criteria.Roles{
		Rivals: []string{
			"kueue",
			"slurm",
			"random",
		},
		Greedy:    []string{"kueue", "random"},
		Foresight: []string{"perfect"},
	}
}

func criterion(t *testing.T, title string) criteria.Criterion {
	t.Helper()
	for _, c := range criteria.All() {
		if c.Title == title {
			return c
		}
	}
	t.Fatalf("there is no criterion %s", title)
	return criteria.Criterion{}
}

func TestCriterion_Judge(t *testing.T) {
	const goodput, byHours, mean, longest = "goodput.mean", "by_gpu_hours.wait_seconds_mean", "wait_seconds.mean", "wait_seconds.max"
	two := []string{"lockstep", "kueue", "slurm"}
	for _, c := range []struct {
		name, criterion string
		table           compare.Table
		mark            criteria.Mark
		reference       string
		significant     bool
	}{
		{
			"a loss to the better of two", "goodput",
			figures(goodput, two, []float64{0.80, 0.82, 0.81}, compare.Better, compare.Unclear),
			criteria.Missed, "kueue", true,
		},
		{
			"a loss by chance", "goodput",
			figures(goodput, two, []float64{0.80, 0.79, 0.81}, compare.Worse, compare.Unclear),
			criteria.Missed, "slurm", false,
		},
		{
			"a tie is met", "goodput", figures(goodput, two, []float64{0.8, 0.8, 0.7}, compare.Equal, compare.Worse),
			criteria.Met, "kueue", false,
		},
		{
			"a tie to the last digit shown", "goodput",
			figures(goodput, two, []float64{0.8, 0.80009, 0.7}, compare.Better, compare.Worse), criteria.Met, "kueue", true,
		},
		{
			"a second is no wait", "wait by GPU-hours",
			figures(byHours, two, []float64{1, 0, 2}, compare.Better, compare.Worse), criteria.Met, "kueue", true,
		},
		{
			"a win", "wait by GPU-hours",
			figures(byHours, two, []float64{100, 120, 110}, compare.Worse, compare.Worse), criteria.Met, "slurm", false,
		},
		{
			"ablations are no rivals", "wait by GPU-hours",
			figures(byHours, []string{"lockstep", "lockstep:greedy", "kueue"}, []float64{100, 50, 120}, compare.Better, compare.Worse),
			criteria.Met, "kueue", false,
		},
		{
			"within 1.1 times, though significant", "mean wait",
			figures(mean, two, []float64{1099, 1000, 10}, compare.Better, compare.Better), criteria.Met, "kueue", true,
		},
		{
			"beyond 1.1 times and 30 s", "mean wait",
			figures(mean, two, []float64{1101, 1000, 10}, compare.Better, compare.Better), criteria.Missed, "kueue", true,
		},
		{
			"32 times, but within 30 s", "mean wait",
			figures(mean, two, []float64{29, 0.9, 0}, compare.Better, compare.Better), criteria.Met, "kueue", true,
		},
		{
			"Slurm is not greedy", "mean wait", figures(mean, []string{"lockstep", "slurm"}, []float64{100, 1}, compare.Better),
			criteria.Open, "", false,
		},
		{
			"the longest is beyond foresight's", "longest wait",
			figures(longest, []string{"lockstep", "kueue", "perfect"}, []float64{117, 10, 100}, compare.Better, compare.Better),
			criteria.Missed, "perfect", true,
		},
		{
			"no reference played", "longest wait", figures(longest, two, []float64{116, 10, 100}, compare.Better, compare.Better),
			criteria.Open, "", false,
		},
		{
			"the table has no such row", "goodput", figures(mean, two, []float64{1, 1, 1}, compare.Equal, compare.Equal),
			criteria.Open, "", false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := criterion(t, c.criterion).Judge(c.table, roles())
			if got.Mark != c.mark || got.Reference != c.reference || got.Significant() != c.significant {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

// A reference with fewer seeds is held against our figure of the same seeds: of seeds 1 and 2 ours is 10 and 30, and
// the reference played the first alone, with 12.
func TestCriterion_Judge_fewerSeeds(t *testing.T) {
	table := compare.Table{Schedulers: []string{"lockstep", "kueue"}, Rows: []compare.Row{{
		Name: "by_gpu_hours.wait_seconds_mean", Means: []float64{20, 12},
		Against: []compare.Difference{{Mean: 2, Pairs: 1, Verdict: compare.WorseOnce}},
	}}}
	got := criterion(t, "wait by GPU-hours").Judge(table, roles())
	if got.Mark != criteria.Met || got.Ours != 10 || got.Theirs != 12 || got.Pairs != 1 {
		t.Errorf("it is %+v", got)
	}
}

// Whatever the figures: it is missed if and only if at least one reference alone has it missed, a worse figure of ours
// is never judged better, and the order of the others decides nothing but which of equals is named.
func TestCriterion_Judge_properties(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 6))
	names := []string{"lockstep", "kueue", "slurm", "random"}
	for range 2000 {
		c := criteria.All()[r.IntN(3)]
		means := []float64{0, 0, 0, 0}
		for i := range means {
			means[i] = float64(r.IntN(200))
		}
		verdicts := []compare.Verdict{compare.Unclear, compare.Unclear, compare.Unclear}
		whole := c.Judge(figures(c.Row, names, means, verdicts...), roles())
		missed := false
		for i := 1; i < len(names); i++ {
			alone := c.Judge(
				figures(c.Row, []string{names[0], names[i]}, []float64{means[0], means[i]}, verdicts[0]),
				roles(),
			)
			missed = missed || alone.Mark == criteria.Missed
		}
		if (whole.Mark == criteria.Missed) != missed {
			t.Fatalf("%s of %v is %+v", c.Title, means, whole)
		}
		worse := append([]float64{means[0] + 10}, means[1:]...)
		if c.Higher {
			worse[0] = means[0] - 10
		}
		if later := c.Judge(figures(c.Row, names, worse, verdicts...), roles()); whole.Mark == criteria.Missed &&
			later.Mark != criteria.Missed {
			t.Fatalf("%s: %v is missed, and %v is not", c.Title, means, worse)
		}
		turned := c.Judge(figures(c.Row, []string{names[0], names[3], names[2], names[1]},
			[]float64{means[0], means[3], means[2], means[1]}, verdicts...), roles())
		if turned.Mark != whole.Mark || turned.Theirs != whole.Theirs {
			t.Fatalf("%s of %v is %+v, and turned %+v", c.Title, means, whole, turned)
		}
	}
}
