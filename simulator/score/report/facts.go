package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// fact is a line of the header.
type fact struct {
	Name, Value string
	Wide        bool
}

// alarm may not be overlooked.
type alarm struct{ Head, Text string }

// facts returns the facts by which a user can reproduce the page.
func facts(card *measure.Scorecard) []fact {
	all := []fact{
		{Name: "Scheduler", Value: card.Scheduler},
		{Name: "Engine", Value: card.Engine},
		{Name: "Fleet", Value: fmt.Sprintf("%s: %s nodes, %s GPUs", card.Fleet, count(card.Nodes), count(card.GPUs))},
		{Name: "Trace", Value: card.Trace},
		{Name: "Seed", Value: strconv.FormatUint(card.Seed, 10)},
		{Name: "Load", Value: number(cmp.Or(card.Load, 1)) + " ×"},
		{Name: "Estimates", Value: estimates(card.Estimates)},
		{Name: "Commit", Value: card.Commit},
		{Name: "Configuration", Value: card.ConfigHash},
		{Name: "Window", Value: window(card), Wide: true},
		{Name: "Ties", Value: card.TieRule, Wide: true},
		{Name: "Speed was measured on", Value: card.Machine, Wide: true},
		{Name: "Source of the workload", Value: card.Source, Wide: true},
	}
	return kept(all...)
}

// kept returns the facts that have a value.
func kept(all ...fact) []fact {
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func estimates(factor float64) string {
	if factor == 0 {
		return "none but the trace's"
	}
	return "durations × 1 to " + number(factor)
}

func window(card *measure.Scorecard) string {
	if card.Window.To <= 0 {
		return ""
	}
	text := span(card.Window.From) + " to " + span(card.Window.To)
	if card.Window.Rule != "" {
		text += ": " + card.Window.Rule
	}
	return text
}

// alarms are the warnings about runs whose numbers may mislead.
func alarms(card *measure.Scorecard) []alarm {
	var all []alarm
	if card.Partial != "" {
		all = append(all, alarm{"Partial result.", card.Partial + ". All numbers are of the part that was played."})
	}
	if n := violations(card); n > 0 {
		all = append(all, alarm{"Rules were broken.", counted(n, "start") + " broke a rule; see the headline numbers."})
	}
	return all
}

// notices returns the notes about the inputs that a reader needs.
func notices(card *measure.Scorecard) []string {
	var all []string
	if card.Synthetic {
		all = append(all, "The workload is synthetic: it was made, and is no record of what happened anywhere.")
	}
	return append(all, card.Notes...)
}
