package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// writeCard prints a scorecard for people.
func writeCard(out io.Writer, card measure.Scorecard) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say := func(what, format string, values ...any) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", what, fmt.Sprintf(format, values...)) // Flush reports errors
	}
	say("scheduler", "%s, engine %s, seed %d, commit %s, configuration %s",
		card.Scheduler, card.Engine, card.Seed, card.Commit, card.ConfigHash)
	say("ties", "%s", card.TieRule)
	say("fleet", "%s: %d nodes, %d accelerators", card.Fleet, card.Nodes, card.GPUs)
	say("trace", "%s, load %s%s", card.Trace, number(card.Load), synthetic(card))
	if card.Source != "" {
		say("", "%s", card.Source)
	}
	for _, note := range card.Notes {
		say("note", "%s", note)
	}
	if card.Partial != "" {
		say("PARTIAL", "%s", card.Partial)
	}
	if card.AllocationAtArrival != nil {
		writeShared(say, card)
	} else {
		writeGangs(say, card)
	}
	say("speed", "%s gangs/s, %s pods/s, %.1f s in all; a decision p50 %s, p99 %s, at most %s ms (%s)",
		number(card.Throughput.GangsPerSecond), number(card.Throughput.PodsPerSecond), card.Throughput.WallSeconds,
		number(card.DecisionMS.P50), number(card.DecisionMS.P99), number(card.DecisionMS.Max), card.Machine)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the scorecard: %w", err)
	}
	return nil
}

func synthetic(card measure.Scorecard) string {
	if card.Synthetic {
		return ", synthetic"
	}
	return ""
}

// writeGangs is the part about a workload in time.
func writeGangs(say func(what, format string, values ...any), card measure.Scorecard) {
	say("goodput", "%s: useful work by all accelerators of the window, %s GPU-hours",
		percent(card.Goodput.Mean), number(card.Goodput.GPUHours))
	say("window", "%s to %s: %s", span(card.Window.From), span(card.Window.To), card.Window.Rule)
	say("gangs", "%d submitted, %d placed, %d finished, %d left waiting; %d pods placed",
		card.Gangs.Submitted, card.Gangs.Placed, card.Gangs.Finished, card.Gangs.Pending, card.Pods.Placed)
	say("wait", "mean %s, p50 %s, p95 %s, p99 %s, max %s; weighted by GPU-hours %s",
		span(card.Wait.Mean), span(card.Wait.P50), span(card.Wait.P95), span(card.Wait.P99), span(card.Wait.Max),
		span(card.ByGPUHours.Wait))
	say("completion", "mean %s, p50 %s, p95 %s; makespan %s; bounded slowdown mean %s, p95 %s", span(card.JCT.Mean),
		span(card.JCT.P50), span(card.JCT.P95), span(card.Makespan),
		number(card.BoundedSlowdown.Mean), number(card.BoundedSlowdown.P95))
	say("quality", "Q mean %.4f, 5th percentile %.4f, by GPU-hours %.4f; gap mean %.4f, p95 %.4f; "+
		"%d split, %d rank inversions (%d starts looked at)",
		card.Quality.MeanQ, card.Quality.P05Q, card.ByGPUHours.Q, card.Quality.MeanGap, card.Quality.P95Gap,
		card.Quality.Split, card.Quality.RankInversions, card.Quality.Samples)
	say("in use", "mean %s, while jobs wait %s, peak %s",
		percent(card.Utilization.Mean), percent(card.Utilization.BusyMean), percent(card.Utilization.Peak))
	say("fragmentation", "mean %s, end %s of what is free; largest gang that could start: mean %s, least %s GPUs",
		percent(card.Fragmentation.Mean), percent(card.Fragmentation.End),
		number(card.Largest.Mean), number(card.Largest.Min))
	say("ended early", "%d preempted (%s GPU-hours lost), %d lost nodes (%s GPU-hours)", card.Preemption.Gangs,
		number(card.Preemption.GPUHours), card.Preemption.Disrupted, number(card.Preemption.DisruptedGPUHours))
	writeCosts(say, card)
	v := card.Violations
	say("broken rules", "partial gangs %d, required level %d, NVLink %d, devices %d, double booking %d",
		v.PartialGangs, v.RequiredLevel, v.NVLink, v.DRA, v.DoubleBooking)
	for _, class := range card.Classes {
		say("  "+class.Name, "%d jobs, %s GPU-hours: wait mean %s, p95 %s, max %s; Q %.4f; %d left waiting",
			class.Jobs, number(class.GPUHours), span(class.Wait.Mean), span(class.Wait.P95), span(class.Wait.Max),
			class.MeanQ, class.Pending)
	}
}

// writeShared is the part about pods that share GPUs and arrive without times.
func writeShared(say func(what, format string, values ...any), card measure.Scorecard) {
	say("pods", "%d came, %d placed, %d dropped", card.Gangs.Submitted, card.Gangs.Placed, card.Gangs.Pending)
	marks := make([]int, 0, len(card.AllocationAtArrival))
	for mark := range card.AllocationAtArrival {
		if n, err := strconv.Atoi(mark); err == nil {
			marks = append(marks, n)
		}
	}
	slices.Sort(marks)
	for _, mark := range marks {
		allocated := card.AllocationAtArrival[strconv.Itoa(mark)]
		say(fmt.Sprintf("at %d %%", mark), "%.2f %% of the GPUs allocated", allocated)
	}
}

// number prints a number with three digits that mean something, and whole ones unchanged.
func number(x float64) string {
	switch {
	case x == float64(int64(x)) || x >= 1000 || x <= -1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	default:
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

// span prints seconds as people say them.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + "s"
	case d < 48*time.Hour:
		text := d.Round(time.Second).String()
		if d.Round(time.Second)%time.Minute == 0 {
			text = strings.TrimSuffix(text, "0s")
		}
		return text
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
