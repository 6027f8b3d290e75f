package benchmark

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
)

// commands are those that play the comparison alone: one for all schedulers that play all seeds, and one for those that
// play the first.
func (e *entry) commands() []string {
	out := []string{e.command(e.schedulers, e.seeds)}
	if len(e.few) > 0 {
		out = append(out, e.command(slices.Concat(e.schedulers[:1], e.few), e.seedsOf(e.few[0])))
	}
	return out
}

// listCommand returns the command that plays a list of openb's, wherever the lists are.
func (e *entry) listCommand() string {
	return "lockstep compare --fleet openb:openb_node_list_gpu_node.csv --trace openb:openb_pod_list_LIST.csv --schedulers " +
		strings.Join(
			e.schedulers,
			",",
		) + " --seeds " + strings.ReplaceAll(
		join(e.seeds),
		" ",
		"",
	)
}

// command returns the command that plays some seeds of the comparison with some schedulers.
func (e *entry) command(of []string, seeds []uint64) string {
	words := []string{"lockstep compare --fleet", e.names.Fleet, "--trace", e.names.Trace}
	flag := func(name string, value float64) {
		words = append(words, name, strconv.FormatFloat(value, 'g', -1, 64))
	}
	if e.options.Load != 0 {
		flag("--load", e.options.Load)
	}
	if e.options.Estimates > 0 {
		flag("--estimates", e.options.Estimates)
	}
	if e.options.Silent > 0 {
		flag("--declared", 1-e.options.Silent)
	}
	if e.options.Wishes {
		words = append(words, "--wishes")
	}
	if e.options.Elastic > 0 {
		flag("--elastic", e.options.Elastic)
	}
	words = append(words, e.costWords()...)
	if e.options.First > 0 {
		words = append(words, "--first", strconv.Itoa(e.options.First))
	}
	if e.options.Quick {
		words = append(words, "--quick")
	}
	if e.engine != "" {
		words = append(words, "--engine", e.engine)
	}
	return strings.Join(
		append(words, "--schedulers", strings.Join(of, ","), "--seeds", strings.ReplaceAll(join(seeds), " ", "")),
		" ",
	)
}

// costWords returns the flags for the comparison's costs of time.
func (e *entry) costWords() []string {
	var words []string
	costs := e.options.Costs
	for _, f := range []struct {
		flag   string
		factor int64
	}{{"--slowdown", costs.Slowdown}, {"--startup", costs.Startup}, {"--failures", costs.Failures}} {
		if f.factor != 0 {
			words = append(words, f.flag, cost.Factor(f.factor))
		}
	}
	if costs.Checkpoint > 0 {
		every := time.Duration(costs.Checkpoint) * time.Second
		words = append(words, "--checkpoint", strings.TrimSuffix(every.String(), "0s"))
	}
	return words
}

// costs describes the costs of time, if there are any.
func (c *comparison) costs() string {
	if c.table.Costs == nil {
		return ""
	}
	return "; costs of time: " + c.table.Costs.String()
}

// deadlines describes the stated deadlines.
func (c *comparison) deadlines() string {
	var text string
	switch {
	case c.options.Silent == 1:
		return "no deadlines"
	case c.table.Estimates > 0:
		text = fmt.Sprintf("deadlines of 1 to %s times the run time", number(c.table.Estimates))
	default:
		text = "no deadlines but those of the trace"
	}
	if c.options.Silent > 0 {
		text += fmt.Sprintf(", stated for %s %% of the jobs that have one", number(100*(1-c.options.Silent)))
	}
	return text
}

// fewer is the text behind the name of a scheduler that has played fewer seeds.
func (c *comparison) fewer(scheduler string) string {
	if n := len(c.seedsOf(scheduler)); n < len(c.seeds) {
		return fmt.Sprintf(" (%d seeds)", n)
	}
	return ""
}

// engineOf returns the engine of a scheduler of the table.
func (c *comparison) engineOf(scheduler int) string {
	at := slices.IndexFunc(
		c.outcomes,
		func(o simulation.Outcome) bool { return o.Card.Scheduler == c.table.Schedulers[scheduler] },
	)
	if at < 0 {
		return ""
	}
	return c.outcomes[at].Card.Engine
}

// bound is the row of the lower bound for any scheduler, where it is known.
func (c *comparison) bound(b *strings.Builder) {
	cells, known := []string{}, false
	for _, column := range c.columns() {
		text := ""
		at := slices.IndexFunc(c.table.Rows, func(r compare.Row) bool { return r.Name == column.name })
		if at >= 0 && c.table.Rows[at].Bound != nil {
			text, known = number(*c.table.Rows[at].Bound*column.scale), true
		}
		cells = append(cells, text)
	}
	if known {
		b.WriteString("| bound | " + strings.Join(cells, " | ") + " | |\n")
	}
}
