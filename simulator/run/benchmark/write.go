package benchmark

import (
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
)

// Write writes the document as Markdown.
func (d *Document) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n")
	if d.quick {
		b.WriteString("**This is a quick run: one seed, and the first jobs of each trace only. " +
			"It shows that everything runs.**\n\n")
	}
	if len(d.missing) > 0 {
		fmt.Fprintf(&b, "**Not played yet: %s.**\n\n", strings.Join(d.missing, ", "))
	}
	if len(d.short) > 0 {
		fmt.Fprintf(
			&b,
			"**Seeds that were played so far, where they are fewer than planned: %s.**\n\n",
			strings.Join(d.short, ", "),
		)
	}
	if len(d.comparisons) > 0 {
		d.summary(&b)
		d.head(&b)
	}
	var arrivals []comparison
	for _, c := range d.comparisons {
		if c.table.Allocation != nil {
			arrivals = append(arrivals, c)
			continue
		}
		c.write(&b)
	}
	writeArrivals(&b, arrivals)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

// head writes the facts that hold for all comparisons.
func (d *Document) head(b *strings.Builder) {
	card := d.comparisons[0].outcomes[0].Card
	b.WriteString("## How to read the tables\n\n")
	fmt.Fprintf(b, "Written by `make benchmarks` from the results of commit %s; wall times were measured on %s. ",
		strings.Join(d.commits(), ", "), card.Machine)
	b.WriteString("An interrupted command\nresumes. `lockstep compare` plays each comparison alone, " +
		"and `out/benchmarks/` has the results: event logs,\n" +
		"reports, and a page for each comparison. The scorecards are in the repository, beside this page in `benchmarks/`.\n\n")
	b.WriteString(legend)
}

// commits are those that results are of, in their order.
func (d *Document) commits() []string {
	var commits []string
	for _, c := range d.comparisons {
		if commit := c.outcomes[0].Card.Commit; !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	return commits
}

const legend = `Each scheduler plays the same scenes, seed by seed. Numbers are means of the seeds. A + or - after a number says that it is better
or worse than Lockstep's: with a confidence of 95 % none of the marks of a table is wrong (paired by seed, Student's t, corrected for all
cells of the table by Holm's procedure), (+) or (-) if there is one seed only, which proves nothing about others. Engine direct, but for
native-tas and comparisons named -native, which are the real kube-scheduler stepped in virtual time; speeds are marked within one engine only.
A scheduler with fewer seeds is compared with Lockstep's figures for those. **bound** is a limit that no scheduler can beat (` + "`simulator/score/bound`" + `): it takes all
accelerators for one machine, and counts the time of runs that are lost as waiting. Comparisons are played beside other work: times of decisions and pods/s are rough.

* **goodput**: accelerators that did work which counts, per cent of all, over a window that is the same for all. What a preempted job had done is not counted.
* **wait**: mean over jobs, in minutes; **by GPU-h** the same weighted by GPU-hours, in hours; **p95** and **longest** in hours.
  Over all jobs, if none is slowed or lost, the wait by GPU-hours depends on when accelerators are busy alone, and not on who is first: it moves with goodput.
  The mean over jobs depends on who is first, since most jobs are small.
* **slowdown**: time of training by that on the best places, where bad places cost time (` + "`--slowdown on`, docs/simulator-costs.md" + `). **Q**: cost of the best possible placement divided by that of the one
  that was chosen, by GPU-hours; 1 is the best. **split**: gangs that used several NVLink (or innermost) domains though one would
  have held them. **inversions**: boundaries that rings cross for nothing. **lost**: GPU-hours of work since the last checkpoint that preemption
  threw away; jobs write none unless the comparison says how often.
* **broken**: starts that broke a rule. **p99**: of decisions, in milliseconds of wall time. **pods/s**: pods started, by wall time.
* ` + "`simulator/score/measure`" + ` defines them; all others are in the results. Traces marked synthetic were made from published marginals.
* Baselines place whole gangs and know what their namesakes know; each has the discipline that it has in the field (backfill or greedy,
  window is Slurm's; see the package ` + "`baseline`" + `, which also says what each can be asked for). ` + "`optimum`" + ` decides as Lockstep does and knows when everything really ends: what knowledge would be worth.
  With it a reserved place is free sooner, so fewer may pass it: large gangs wait less, and small jobs may wait longer.
* All queue by priority; lockstep, its variants but greedy and nopreempt, and kueue-bestfit-preempt preempt for it. Names that end in half and
  none are the same comparison in which the owners of half of the jobs, or of none, state a deadline. In Acme's traces pretraining is before all others, and evaluations, which
  are most of the jobs and few of the GPU-hours, may be preempted: their waits make the mean, pretraining's the one by GPU-hours.

`

// column is a number of the table.
type column struct {
	title, name string
	scale       float64
	// wall is set for columns of wall time, which depends on the engine.
	wall bool
}

func columns() []column {
	return []column{
		{"goodput (%)", "goodput.mean", 100, false},
		{"wait (min)", "wait_seconds.mean", 1.0 / 60, false},
		{"p95 (h)", "wait_seconds.p95", 1.0 / 3600, false},
		{"longest (h)", "wait_seconds.max", 1.0 / 3600, false},
		{"by GPU-h (h)", "by_gpu_hours.wait_seconds_mean", 1.0 / 3600, false},
		{"makespan (h)", "makespan_seconds", 1.0 / 3600, false},
		{"slowdown", "costs.mean_slowdown", 1, false},
		{"Q", "by_gpu_hours.quality_mean_q", 1, false},
		{"split", "quality.split_domains", 1, false},
		{"inversions", "quality.rank_inversions", 1, false},
		{"lost", "preemption.gpu_hours", 1, false},
		{"left", "gangs.pending", 1, false},
		{"p99 (ms)", "decision_ms.p99", 1, true},
		{"pods/s", "throughput.pods_per_s", 1, true},
	}
}

// columns are those of the comparison: slowdowns have one only where bad places cost time.
func (c *comparison) columns() []column {
	return slices.DeleteFunc(columns(), func(of column) bool {
		return !slices.ContainsFunc(c.table.Rows, func(r compare.Row) bool { return r.Name == of.name })
	})
}

// write is the section about one comparison.
func (c *comparison) write(b *strings.Builder) {
	card := c.outcomes[0].Card
	fmt.Fprintf(b, "## %s\n\n%s.\n\n", c.name, capital(c.shows))
	fmt.Fprintf(b, "Fleet %s: %d nodes, %d accelerators. ", c.table.Fleet, card.Nodes, card.GPUs)
	fmt.Fprintf(b, "Trace %s, load %s, %d jobs%s; seeds %s; ",
		c.table.Trace, number(c.table.Load), card.Gangs.Submitted, synthetic(c.table), join(c.seeds))
	b.WriteString(c.deadlines() + c.costs() + ". ")
	fmt.Fprintf(b, "Source: %s. Window: %s.\n\n", card.Source, card.Window.Rule)
	for _, note := range card.Notes {
		fmt.Fprintf(b, "Note: %s.\n\n", note)
	}
	for i, sentence := range c.table.InWords() {
		if slices.Contains(c.schedulers, c.table.Schedulers[i+1]) {
			b.WriteString("* " + capital(sentence) + "\n")
		}
	}
	b.WriteString("\n```sh\n" + strings.Join(c.commands(), "\n") + "\n```\n\n| scheduler |")
	shown := c.columns()
	for _, column := range shown {
		b.WriteString(" " + column.title + " |")
	}
	b.WriteString(" broken |\n|---|" + strings.Repeat("--:|", len(shown)+1) + "\n")
	for i, scheduler := range c.table.Schedulers {
		b.WriteString("| " + scheduler + c.fewer(scheduler) + " |")
		for _, column := range shown {
			b.WriteString(" " + c.cell(i, column) + " |")
		}
		fmt.Fprintf(b, " %d |\n", c.broken(scheduler))
	}
	c.bound(b)
	b.WriteString("\n")
}

// cell is a number of a scheduler, with the sign of its verdict against the first.
func (c *comparison) cell(scheduler int, of column) string {
	row := c.table.Rows[slices.IndexFunc(c.table.Rows, func(r compare.Row) bool { return r.Name == of.name })]
	text := number(row.Means[scheduler] * of.scale)
	if scheduler == 0 || of.wall && c.engineOf(0) != c.engineOf(scheduler) {
		return text
	}
	return text + sign(row.Against[scheduler-1].Verdict)
}

func sign(v compare.Verdict) string {
	switch v {
	case compare.Better:
		return " +"
	case compare.Worse:
		return " -"
	case compare.BetterOnce:
		return " (+)"
	case compare.WorseOnce:
		return " (-)"
	case compare.Equal, compare.Unclear, compare.NoVerdict:
	}
	return ""
}

// broken returns the number of starts that broke a rule, with all seeds. NVLink is among the required levels.
func (c *comparison) broken(scheduler string) int {
	sum := 0
	for _, outcome := range c.outcomes {
		if v := outcome.Card.Violations; outcome.Card.Scheduler == scheduler {
			sum += v.PartialGangs + v.RequiredLevel + v.DRA + v.DoubleBooking
		}
	}
	return sum
}

// writeArrivals is the section about openb.
func writeArrivals(b *strings.Builder, comparisons []comparison) {
	if len(comparisons) == 0 {
		return
	}
	b.WriteString("## openb\n\nPods that share GPUs (the FGD paper's experiment): " +
		"per cent of the GPUs allocated when pods had asked for all of them, mean of the\n" +
		"seeds 42 to 51; below it what was published for the same, and the difference.\n\n| list |")
	for _, policy := range comparisons[0].table.Allocation.Policies {
		b.WriteString(" " + policy.Name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(comparisons[0].table.Allocation.Policies)) + "\n")
	worst := 0.0
	for _, c := range comparisons {
		list := strings.TrimSuffix(strings.TrimSuffix(path.Base(c.table.Trace), ".gz"), ".csv")
		list = strings.TrimPrefix(strings.TrimPrefix(list, "openb:"), "openb_pod_list_")
		b.WriteString("| " + list + " |")
		for _, policy := range c.table.Allocation.Policies {
			at := slices.Index(c.table.Allocation.Arrivals, 100)
			fmt.Fprintf(b, " %s", policy.Allocated[at])
			if policy.Published != nil {
				off := policy.Allocated[at].Mean - policy.Published.Mean
				worst = max(worst, math.Abs(off))
				fmt.Fprintf(b, "<br>%.2f (%+.2f)", policy.Published.Mean, off)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "\nThe largest difference is %.2f points.\n\n```sh\n%s\n```\n", worst, comparisons[0].listCommand())
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func synthetic(t compare.Table) string {
	if t.Synthetic {
		return " (synthetic)"
	}
	return ""
}

func join(seeds []uint64) string {
	texts := make([]string, len(seeds))
	for i, seed := range seeds {
		texts[i] = strconv.FormatUint(seed, 10)
	}
	return strings.Join(texts, ", ")
}

// number has three significant digits, and all before the point; a value below a ten-thousandth is 0.
func number(x float64) string {
	if math.Abs(x) < 0.0001 {
		return "0"
	}
	if math.Abs(x) >= 100 || x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
