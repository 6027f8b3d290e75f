package compare_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

func TestQuantile_EqualsPublishedTables(t *testing.T) {
	for freedom, want := range map[int]float64{
		1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 9: 2.2622, 10: 2.2281, 19: 2.0930, 29: 2.0452,
		30: 2.0423, 60: 2.0003, 120: 1.9799, 1000: 1.9623,
	} {
		if got := compare.Quantile(freedom); math.Abs(got-want) > 0.00006 {
			t.Errorf("with %d degrees of freedom it is %.5f, tables have %.4f", freedom, got, want)
		}
	}
}

// card is a run on the same inputs, whose mean wait and allocation are given.
func card(scheduler string, seed uint64, wait, allocation float64) measure.Scorecard {
	return measure.Scorecard{
		Scheduler: scheduler, Engine: "direct", Fleet: "c3", Trace: "philly", Seed: seed, Source: "records", Load: 1.3,
		Nodes: 8, GPUs: 64, Commit: "abc", Gangs: measure.Gangs{Submitted: 100}, Wait: measure.Times{Mean: wait},
		Utilization: measure.Utilization{Mean: allocation},
	}
}

func row(tb testing.TB, table compare.Table, name string) compare.Row {
	tb.Helper()
	at := slices.IndexFunc(table.Rows, func(r compare.Row) bool { return r.Name == name })
	if at < 0 {
		tb.Fatalf("there is no row %s", name)
	}
	return table.Rows[at]
}

// near compares to nine digits.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestRuns_PairDifferencesBySeed(t *testing.T) {
	// Seeds differ by far more than schedulers do; seed by seed, b waits 10, 12 and 14 s longer, and allocates as much.
	table, err := compare.Runs([]measure.Scorecard{
		card(
			"a",
			1,
			100,
			0.5,
		),
		card("b", 1, 110, 0.5),
		card("c", 1, 90, 0.6),
		card("a", 3, 900, 0.7),
		card("b", 3, 914, 0.7),
		card("c", 3, 905, 0.7),
		card("a", 2, 500, 0.6),
		card("b", 2, 512, 0.6),
		card("c", 2, 480, 0.8),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.Schedulers, []string{"a", "b", "c"}) || !slices.Equal(table.Seeds, []uint64{1, 2, 3}) {
		t.Fatalf("compared are %v with seeds %v", table.Schedulers, table.Seeds)
	}
	waits := row(t, table, "wait_seconds.mean")
	if !near(waits.Means[0], 500) || !near(waits.Means[1], 512) {
		t.Errorf("the means are %v", waits.Means)
	}
	// The standard deviation is 2, so the margin is 4.3027 * 2 / sqrt(3).
	b := waits.Against[0]
	if b.Mean != 12 || math.Abs(*b.Margin-4.96828) > 0.0001 || b.Pairs != 3 || b.Agree != 3 ||
		b.Verdict != compare.Worse {
		t.Errorf("b against a is %+v, give or take %v", b, *b.Margin)
	}
	// -10, -20 and +5: two of three agree with the mean, and the interval has 0 in it.
	c := waits.Against[1]
	if math.Abs(c.Mean+25.0/3) > 1e-9 || c.Agree != 2 || c.Verdict != compare.Unclear {
		t.Errorf("c against a is %+v", c)
	}
	if d := row(t, table, "utilisation.mean").Against[0]; d.Verdict != compare.Equal || d.Agree != 3 || *d.Margin != 0 {
		t.Errorf("what is equal is %+v", d)
	}
	if d := row(t, table, "gangs.submitted").Against[0]; d.Verdict != compare.NoVerdict {
		t.Errorf("what has no direction is %q", d.Verdict)
	}
}

func TestRuns_MoreOrLessIsBetter(t *testing.T) {
	table, err := compare.Runs([]measure.Scorecard{
		card("a", 1, 100, 0.5), card("b", 1, 80, 0.6), card("a", 2, 100, 0.5), card("b", 2, 80, 0.6),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"wait_seconds.mean", "utilisation.mean"} {
		if d := row(t, table, name).Against[0]; d.Verdict != compare.Better {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestRuns_OneSeedHasNoInterval(t *testing.T) {
	table, err := compare.Runs([]measure.Scorecard{card("a", 1, 100, 0.5), card("b", 1, 80, 0.4)})
	if err != nil {
		t.Fatal(err)
	}
	if d := row(t, table, "wait_seconds.mean").Against[0]; d.Margin != nil || d.Verdict != compare.BetterOnce {
		t.Errorf("less wait with one seed is %+v", d)
	}
	if d := row(t, table, "utilisation.mean").Against[0]; d.Verdict != compare.WorseOnce {
		t.Errorf("less allocation with one seed is %+v", d)
	}
	if len(table.Notes) == 0 || !strings.Contains(table.Notes[0], "one seed") {
		t.Errorf("the notes are %q", table.Notes)
	}
}

func TestRuns_OfOtherInputsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*measure.Scorecard)
		want   string
	}{
		{"another fleet", func(c *measure.Scorecard) { c.Fleet = "c1" }, "fleet differs"},
		{"a fleet of one name and other nodes", func(c *measure.Scorecard) { c.Nodes = 9 }, "fleet differs"},
		{"another trace", func(c *measure.Scorecard) { c.Trace = "acme" }, "trace differs"},
		{"another source", func(c *measure.Scorecard) { c.Source = "hearsay" }, "source differs"},
		{"another load", func(c *measure.Scorecard) { c.Load = 2 }, "load differs"},
		{"other estimates", func(c *measure.Scorecard) { c.Estimates = 2 }, "estimates differs"},
		{"another length", func(c *measure.Scorecard) { c.Gangs.Submitted = 99 }, "number of jobs differs"},
		{"another seed", func(c *measure.Scorecard) { c.Seed = 9 }, "seeds differ"},
		{"part of a run", func(c *measure.Scorecard) { c.Partial = "interrupted" }, "interrupted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cards := []measure.Scorecard{card("a", 1, 1, 1), card("a", 2, 1, 1), card("b", 1, 2, 1), card("b", 2, 2, 1)}
			tc.change(&cards[3])
			_, err := compare.Runs(cards)
			if !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "--force") {
				t.Fatalf("the error is %v", err)
			}
			table, err := compare.Forced(cards)
			if err != nil || !strings.Contains(table.Watermark, tc.want) {
				t.Fatalf("by force there is the watermark %q, and %v", table.Watermark, err)
			}
			var text strings.Builder
			if err := table.WriteText(&text); err != nil || strings.Count(text.String(), "!! NOT COMPARABLE") != 2 {
				t.Errorf("%v, the text is\n%s", err, text.String())
			}
		})
	}
}

func TestRuns_NoteSeedsWithoutEffect(t *testing.T) {
	noted := func(cards []measure.Scorecard) (bool, compare.Row) {
		table, err := compare.Runs(cards)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(table.Notes, "\n")
		return strings.Contains(notes, "seeds make no difference"), row(t, table, "wait_seconds.mean")
	}
	cards := []measure.Scorecard{
		card("a", 1, 0.1, 1), card("a", 2, 0.1, 1), card("a", 3, 0.1, 1),
		card("b", 1, 0.3, 1), card("b", 2, 0.3, 1), card("b", 3, 0.3, 1),
	}
	is, waits := noted(cards)
	if against := waits.Against[0]; !is || against.Margin == nil || *against.Margin != 0 || against.Mean != 0.2 {
		t.Errorf("noted: %v, the difference is %+v", is, against)
	}
	cards[4].JCT.Mean = 7
	if is, _ := noted(cards); is {
		t.Error("one run is different, and it is said that none is")
	}
}

func TestRuns_SourceMayNameTheSeed(t *testing.T) {
	cards := []measure.Scorecard{card("a", 0, 1, 1), card("b", 0, 1, 1), card("a", 1, 1, 1), card("b", 1, 1, 1)}
	cards[2].Source, cards[3].Source = "weeks drawn", "weeks drawn"
	table, err := compare.Runs(cards)
	if err != nil || table.Watermark != "" {
		t.Errorf("%v, %q", err, table.Watermark)
	}
}

func TestRuns_RefuseIncomparableCards(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cards []measure.Scorecard
		want  string
	}{
		{"nothing", nil, "0 schedulers"},
		{"one scheduler", []measure.Scorecard{card("a", 1, 1, 1), card("a", 2, 1, 1)}, "1 schedulers"},
		{"a run twice", []measure.Scorecard{card("a", 1, 1, 1), card("b", 1, 1, 1), card("a", 1, 1, 1)}, "two runs of a with seed 1"},
		{"no seed in common", []measure.Scorecard{card("a", 1, 1, 1), card("b", 2, 1, 1)}, "seed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, runs := range []func([]measure.Scorecard) (compare.Table, error){compare.Runs, compare.Forced} {
				if _, err := runs(tc.cards); !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the error is %v", err)
				}
			}
		})
	}
}

func TestForced_TakesCommonSeedsOnly(t *testing.T) {
	table, err := compare.Forced([]measure.Scorecard{card("a", 1, 10, 1), card("a", 2, 1000, 1), card("b", 1, 20, 1)})
	if err != nil {
		t.Fatal(err)
	}
	waits := row(t, table, "wait_seconds.mean")
	if len(table.Seeds) != 1 || waits.Means[0] != 10 || waits.Against[0].Mean != 10 {
		t.Errorf("seeds %v, means %v", table.Seeds, waits.Means)
	}
}

func TestAllocations_OfOpenb(t *testing.T) {
	run := func(policy string, seed uint64, at100, at130 float64) measure.Scorecard {
		c := card(policy, seed, 0, 0)
		c.AllocationAtArrival = map[string]float64{"100": at100, "130": at130}
		return c
	}
	cards := []measure.Scorecard{
		run("fgd", 42, 95, 96), run("random", 42, 86, 88), run("fgd", 43, 96, 96), run("random", 43, 87, 88.5),
	}
	a, err := compare.Allocations(cards, map[string]compare.Spread{"fgd": {Mean: 95.23, Deviation: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	fgd := a.Policies[0]
	if fgd.Name != "fgd" || !near(fgd.Allocated[0].Mean, 95.5) || !near(fgd.Allocated[0].Deviation, math.Sqrt(0.5)) ||
		fgd.Seeds != 2 || a.Policies[1].Published != nil || !slices.Equal(a.Arrivals, []int{100, 130}) {
		t.Errorf("the allocations are %+v", a)
	}
	var text strings.Builder
	if err := a.WriteText(&text); err != nil || !strings.Contains(text.String(), "95.50 ± 0.71") ||
		!strings.Contains(text.String(), "95.23 ± 0.10") {
		t.Errorf("%v, the text is\n%s", err, text.String())
	}
	table, err := compare.Runs(cards)
	if err != nil || table.Allocation == nil {
		t.Fatal(table.Allocation, err)
	}
	if d := row(t, table, "allocation_at_arrival.100").Against[0]; d.Mean != -9 || d.Verdict != compare.Worse {
		t.Errorf("random against fgd is %+v", d)
	}
	if _, err := compare.Allocations(append(cards, card("other", 42, 1, 1)), nil); !badinput.Is(err) {
		t.Errorf("a run that is none of openb's came to %v", err)
	}
}

func TestText_FitsAndNamesTheBetter(t *testing.T) {
	table, err := compare.Runs([]measure.Scorecard{
		card(
			"lockstep",
			1,
			123456.7,
			0.93121,
		),
		card("least-allocated", 1, 98765.4, 0.5),
		card("lockstep", 2, 124456.7, 0.92),
		card(
			"least-allocated",
			2,
			98000,
			0.51,
		),
		card("lockstep", 3, 7654321, 0),
		card("least-allocated", 3, 1e9, 0.00001),
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := table.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 120 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.Contains(text.String(), "A = lockstep, B = least-allocated") ||
		!strings.Contains(text.String(), "~ unclear") {
		t.Error(text.String())
	}
	if _, err := json.Marshal(table); err != nil {
		t.Error(err)
	}
}
