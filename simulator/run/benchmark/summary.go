package benchmark

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
)

// judged holds the verdict of a comparison about a criterion.
type judged struct {
	comparison string
	criteria.Finding
}

// summary is the verdict that the document opens with: for each criterion the comparisons in which Lockstep misses it,
// then the others.
func (d *Document) summary(b *strings.Builder) {
	var comparisons []comparison
	for _, c := range d.comparisons {
		if c.table.Allocation == nil {
			comparisons = append(comparisons, c)
		}
	}
	if len(comparisons) == 0 {
		return
	}
	all := make([][]judged, len(criteria.All()))
	for i, criterion := range criteria.All() {
		for _, c := range comparisons {
			all[i] = append(all[i], judged{c.name, criterion.Judge(c.targets, roles())})
		}
	}
	b.WriteString("## Who wins where\n\n")
	b.WriteString(totals(comparisons, all))
	for i, criterion := range criteria.All() {
		section(b, criterion, all[i], comparisons)
	}
	matrix(b, comparisons, all)
	why(b, comparisons)
}

// totals counts the misses of each criterion.
func totals(comparisons []comparison, all [][]judged) string {
	var rows strings.Builder
	losing, surely := make(map[string]bool), make(map[string]bool)
	for i, criterion := range criteria.All() {
		missed, significant, judgments := 0, 0, 0
		for _, j := range all[i] {
			if j.Mark != criteria.Open {
				judgments++
			}
			if j.Mark == criteria.Missed {
				missed++
				losing[j.comparison] = true
			}
			if j.Mark == criteria.Missed && j.Significant() {
				significant++
				surely[j.comparison] = true
			}
		}
		fmt.Fprintf(&rows, "| %s | %d | %d | %d |\n", criterion.Title, judgments, missed, significant)
	}
	return fmt.Sprintf(
		"**In %d of %d simulated workloads Lockstep misses a target, in %d of them significantly. The targets are goodput and the wait by GPU-hours\n"+
			"of the best other scheduler, the mean wait of the best greedy one, and the longest wait of Lockstep when it knows all ends.** The first one is the\n"+
			"most important. Each workload (comparison) is a trace on a fleet. A difference is significant with a confidence of 95 %% (paired by seed, Student's t,\n"+
			"corrected by Holm's procedure for the tests that this section makes in a comparison, so that it may be significant here and not in the comparison's\n"+
			"own table). A rival with fewer seeds is compared with Lockstep's figure for the same seeds.\n\n"+
			"**A deadline bounds a run from its start here, as Slurm's time limit does.** The `activeDeadlineSeconds` of a TrainJob count from its creation or\n"+
			"resumption, and end a job that still waits then. So comparisons that are not named -none let Lockstep know more than its users can say, unless Kueue resumes\n"+
			"their jobs, their trainers report or run times are learned ([queueing.md](queueing.md)).\n\n"+
			"| figure | comparisons judged | missed | of them significantly |\n|---|--:|--:|--:|\n",
		len(losing),
		len(comparisons),
		len(surely),
	) +
		rows.String() + "\n"
}

// section lists the comparisons of a criterion, losses first.
func section(b *strings.Builder, c criteria.Criterion, all []judged, comparisons []comparison) {
	var missed []judged
	var met, open []string
	for _, j := range all {
		switch j.Mark {
		case criteria.Missed:
			missed = append(missed, j)
		case criteria.Met:
			met = append(met, j.comparison)
		case criteria.Open:
			open = append(open, j.comparison)
		}
	}
	slices.SortStableFunc(missed, func(x, y judged) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(lead(y), lead(x)))
	})
	fmt.Fprintf(b, "**%s.** Lockstep's %s.\n\n", capital(c.Title), c.Demand)
	for _, j := range missed {
		fmt.Fprintf(
			b,
			"* Missed in %s: %s against %s of %s, %s.\n",
			j.comparison,
			figure(c, j.Ours),
			figure(c, j.Theirs),
			j.Reference,
			gap(c, j),
		)
	}
	list(b, "Met in", met)
	if c.Against == criteria.Greedy {
		beside(b, c, comparisons)
	}
	list(b, "Not judged, because no such rival played, in", open)
	b.WriteString("\n")
}

// beside lists the comparisons in which a rival is ahead of Lockstep by more than the criterion allows although it is
// none of its references.
func beside(b *strings.Builder, c criteria.Criterion, comparisons []comparison) {
	c.Against = criteria.Rivals
	others := roles()
	others.Rivals = slices.DeleteFunc(slices.Clone(others.Rivals), func(name string) bool {
		return slices.Contains(others.Greedy, name)
	})
	var ahead []string
	for _, comparison := range comparisons {
		if f := c.Judge(comparison.targets, others); f.Mark == criteria.Missed {
			ahead = append(ahead, fmt.Sprintf(
				"%s (%s against %s of %s)", comparison.name, figure(c, f.Ours), figure(c, f.Theirs), f.Reference,
			))
		}
	}
	list(b, "Not a target, but by more than that a rival that is not greedy is ahead in", ahead)
}

// list is a line of names, if there are any.
func list(b *strings.Builder, what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(b, "* %s %d: %s.\n", what, len(names), strings.Join(names, ", "))
	}
}

// rank puts significant losses before others.
func rank(j judged) int {
	if j.Significant() {
		return 0
	}
	return 1
}

// lead is by which part of its own figure a reference is ahead.
func lead(j judged) float64 {
	if j.Theirs == 0 {
		return math.Inf(1)
	}
	return math.Abs(j.Ours-j.Theirs) / j.Theirs
}

// figure is a number with its unit.
func figure(c criteria.Criterion, value float64) string { return number(value*c.Scale) + " " + c.Unit }

// gap describes the amount by which ours is worse, and its significance.
func gap(c criteria.Criterion, j judged) string {
	by := number(math.Abs(j.Ours-j.Theirs) * c.Scale)
	if c.Higher {
		return by + " percentage points lower (" + proof(j.Verdict) + ")"
	}
	text := by + " " + c.Unit
	if share := lead(j); !math.IsInf(share, 0) {
		const percent = 100
		text += fmt.Sprintf(" or %s %%", number(percent*share))
	}
	return text + " longer (" + proof(j.Verdict) + ")"
}

// proof returns the conclusion from a difference for other seeds.
func proof(v compare.Verdict) string {
	switch v {
	case compare.Better, compare.Worse:
		return "significant"
	case compare.BetterOnce, compare.WorseOnce:
		return "one seed, which proves nothing"
	case compare.Equal, compare.Unclear, compare.NoVerdict:
	}
	return "not significant"
}

// matrix is the table of all comparisons and criteria.
func matrix(b *strings.Builder, comparisons []comparison, all [][]judged) {
	b.WriteString("| comparison |")
	for _, c := range criteria.All() {
		fmt.Fprintf(b, " %s (%s) |", c.Title, c.Unit)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	for at, comparison := range comparisons {
		fmt.Fprintf(b, "| %s |", comparison.name)
		for i, c := range criteria.All() {
			b.WriteString(" " + judgment(c, all[i][at]) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString(
		"\n✗ missed, and the difference is significant; (✗) missed, and the difference may be chance; ✓ met; – no such rival played. " +
			"Behind it\nLockstep's figure, and that of the rival that is hardest to match.\n\n",
	)
}

// judgment is a cell of the matrix.
func judgment(c criteria.Criterion, j judged) string {
	mark := "✓"
	switch {
	case j.Mark == criteria.Open:
		return "–"
	case j.Mark == criteria.Missed && j.Significant():
		mark = "✗"
	case j.Mark == criteria.Missed:
		mark = "(✗)"
	}
	return fmt.Sprintf("%s %s, %s %s", mark, number(j.Ours*c.Scale), j.Reference, number(j.Theirs*c.Scale))
}
