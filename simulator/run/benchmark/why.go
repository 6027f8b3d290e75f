package benchmark

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
)

// mechanism is a rule of Lockstep that one of its variants changes.
type mechanism struct {
	// variant plays without the rule, or with other knowledge.
	variant string
	// tied is the title of the criterion by which the sentence has its figure.
	tied string
	// text describes the effect of the rule, whatever the figures are.
	text string
}

func mechanisms() []mechanism {
	return []mechanism{
		{
			"noreserve",
			"longest wait",
			"**Reservations.** The first job without room reserves nodes until it can start, and later jobs may use them " +
				"only if they end by then. So a large gang is not passed for ever; what is reserved and fits no short job idles meanwhile.",
		},
		{
			"fifo",
			"mean wait",
			"**Backfill.** Jobs whose stated end is early enough pass the one that has a reservation. Without deadlines no end " +
				"is stated, so little passes.",
		},
		{
			"backfill",
			"mean wait",
			"**Dues.** A job lets those pass that are shorter: it is due when it has waited for a twentieth of its run time. The variant " +
				"has the order of arrival.",
		},
		{
			"trusting",
			"wait by GPU-hours",
			"**Guesses.** A reservation that waits for runs without a stated end holds its nodes idle for a sixteenth of the time for which it would hold " +
				"them for known ends. The variant holds them as long in both cases.",
		},
		{
			"apart",
			"goodput",
			"**Togetherness.** A gang of known run time that asks for no topology runs longer across the boundaries of a domain. It waits for room in " +
				"one, if it needs at most half of it. The variant starts such gangs on any nodes.",
		},
		{
			"unpriced",
			"goodput",
			"**Prices.** A job ends jobs of lower priority only if its earlier start is worth more than what they lose. The variant always does.",
		},
		{
			"nopreempt",
			"goodput",
			"**Preemption.** A job of higher priority ends jobs of lower ones. What those had computed since their last " +
				"checkpoint is lost, and jobs write none unless the comparison says so.",
		},
		{
			"greedy",
			"wait by GPU-hours",
			"**Greedy.** With neither reservations nor preemption any job that fits starts, as under " +
				"kueue-bestfit and first-fit, and small jobs pass large gangs. Against those rivals only the choice of nodes differs.",
		},
		{
			"perfect",
			"wait by GPU-hours",
			"**Ends.** Owners state deadlines of up to three times the run time, or none. The variant knows when each " +
				"job really ends: what better estimates would be worth.",
		},
		{
			"learned",
			"wait by GPU-hours",
			"**Predictions.** The variant predicts run times from those of earlier jobs where no deadline is stated.",
		},
	}
}

// effect is a variant's effect on a comparison, by criterion.
type effect struct {
	comparison string
	// ours and theirs are figures of Lockstep and of the variant by the same seeds, in the units of criteria.All;
	// verdicts are the variant's.
	ours, theirs []float64
	verdicts     []compare.Verdict
}

// why explains the mechanisms by their ablations: only those that played.
func why(b *strings.Builder, comparisons []comparison) {
	var sentences, rows strings.Builder
	for _, m := range mechanisms() {
		if effects := m.effects(comparisons); len(effects) > 0 {
			m.sentence(&sentences, effects)
			m.rows(&rows, effects)
		}
	}
	if sentences.Len() == 0 {
		return
	}
	b.WriteString(
		"## Why\n\nVariants of Lockstep play with one rule changed (`--schedulers lockstep,lockstep:noreserve`).\n\n",
	)
	b.WriteString(sentences.String())
	b.WriteString(
		"\n<details><summary>What each rule is worth in each comparison</summary>\n\nCells are Lockstep's figure → the variant's, " +
			"with + or - if the variant's is significantly better or worse.\nComparisons in which the variant changes none of them are left out.\n\n| variant | comparison |",
	)
	for _, c := range criteria.All() {
		fmt.Fprintf(b, " %s (%s) |", c.Title, c.Unit)
	}
	b.WriteString(
		"\n|---|---|" + strings.Repeat("--:|", len(criteria.All())) + "\n" + rows.String() + "\n</details>\n\n",
	)
}

// effects are those of the comparisons that the variant has played.
func (m mechanism) effects(comparisons []comparison) []effect {
	var out []effect
	for _, c := range comparisons {
		at := slices.Index(c.table.Schedulers, schedulers.Lockstep+":"+m.variant)
		if at < 1 {
			continue
		}
		if e, ok := effectOf(&c, at); ok {
			out = append(out, e)
		}
	}
	return out
}

func effectOf(c *comparison, scheduler int) (effect, bool) {
	e := effect{comparison: c.name}
	for _, criterion := range criteria.All() {
		at := slices.IndexFunc(c.table.Rows, func(r compare.Row) bool { return r.Name == criterion.Row })
		if at < 0 {
			return e, false
		}
		row := c.table.Rows[at]
		d, theirs := row.Against[scheduler-1], row.Means[scheduler]
		e.ours, e.theirs = append(e.ours, (theirs-d.Mean)*criterion.Scale), append(e.theirs, theirs*criterion.Scale)
		e.verdicts = append(e.verdicts, d.Verdict)
	}
	return e, true
}

// sentence has the figure of the comparison in which the rule moves it most.
func (m mechanism) sentence(b *strings.Builder, effects []effect) {
	tied := slices.IndexFunc(criteria.All(), func(c criteria.Criterion) bool { return c.Title == m.tied })
	most := effects[0]
	for _, e := range effects[1:] {
		if moved(e, tied) > moved(most, tied) {
			most = e
		}
	}
	fmt.Fprintf(b, "* %s ", m.text)
	if moved(most, tied) == 0 {
		fmt.Fprintf(b, "`lockstep:%s` moves the %s in no comparison.\n", m.variant, m.tied)
		return
	}
	fmt.Fprintf(
		b,
		"`lockstep:%s` moves the %s most in %s: %s %s instead of %s (%s).\n",
		m.variant,
		m.tied,
		most.comparison,
		number(most.theirs[tied]),
		criteria.All()[tied].Unit,
		number(most.ours[tied]),
		proof(most.verdicts[tied]),
	)
}

// rows are those of the comparisons in which the variant changes something.
func (m mechanism) rows(b *strings.Builder, effects []effect) {
	for _, e := range effects {
		if slices.Equal(e.ours, e.theirs) {
			continue
		}
		fmt.Fprintf(b, "| %s | %s |", m.variant, e.comparison)
		for i := range e.ours {
			fmt.Fprintf(b, " %s → %s%s |", number(e.ours[i]), number(e.theirs[i]), sign(e.verdicts[i]))
		}
		b.WriteString("\n")
	}
}

// moved is the part of the larger figure by which a criterion differs, from 0 to 1.
func moved(e effect, criterion int) float64 {
	most := max(math.Abs(e.ours[criterion]), math.Abs(e.theirs[criterion]))
	if most == 0 {
		return 0
	}
	return math.Abs(e.ours[criterion]-e.theirs[criterion]) / most
}
