package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// howToTell names the ways to make an end known.
const howToTell = "an activeDeadlineSeconds, or a trainer that reports its status, would tell"

// Forecast holds the expected starts of gangs that wait: in a run of the queue in which running units end at their
// known ends, a gang that starts runs until its deadline, and no other arrives.
type Forecast struct {
	starts map[types.NamespacedName]int64
	// endless are the gangs that run and whose end is not known, the largest first.
	endless []string
}

// NewForecast plays the queue. The error is that of a fleet that cannot be read.
func NewForecast(ctx context.Context, w *whatif.WhatIf) (*Forecast, error) {
	left, err := w.Rest(ctx)
	if err != nil {
		return nil, fmt.Errorf("running the queue: %w", err)
	}
	now := w.Now().Unix()
	f := &Forecast{starts: make(map[types.NamespacedName]int64)}
	f.endless = endless(left, now)
	if len(left.Waiting) == 0 {
		return f, nil
	}
	scene := direct.Scene{Now: now, Ledger: left.Ledger, Accelerator: left.Accelerator}
	for _, u := range left.Running {
		scene.Running = append(scene.Running, runningOf(u, now))
	}
	for _, w := range left.Waiting {
		scene.Jobs = append(scene.Jobs, jobOf(w, now))
	}
	result, err := direct.Run(scene, direct.Options{}, nil)
	if err != nil {
		return nil, fmt.Errorf("playing the queue: %w", err)
	}
	for i, job := range result.Jobs {
		f.starts[left.Waiting[i].Name] = job.Started
	}
	return f, nil
}

// ends reports whether a unit has a known end. An end that has passed is none.
func ends(u *contention.Unit, now int64) bool {
	switch u.End.Certainty {
	case contention.Unknown, contention.Never:
		return false
	default:
		return u.End.At > now
	}
}

// runningOf returns a running unit. A unit without a known end does not end in the forecast, so that no start is
// promised that depends on it.
func runningOf(u *contention.Unit, now int64) direct.Running {
	r := direct.Running{
		Name: string(u.ID), Holds: u.Holds, Started: u.Started, Expected: u.End, Ends: direct.Forever,
		Sweep: u.Sweep,
	}
	if ends(u, now) {
		r.Ends = u.End.At
	}
	return r
}

// jobOf is a gang that waits already. One without a deadline does not end in the forecast.
func jobOf(w whatif.Waiting, now int64) direct.Job {
	job := direct.Job{
		Name: w.Name.String(), Order: w.Order, Gang: w.Ask.Gang, Needed: w.Ask.Needed, Arrives: now,
		Accelerators: w.Accelerators, Runs: direct.Forever, Sweep: w.Sweep,
	}
	if end := w.Ask.End; end != topology.EndUnknown && end > now {
		job.Runs, job.Promises = end-now, end-now
	}
	return job
}

func endless(left whatif.Rest, now int64) []string {
	type unit struct {
		name  string
		nodes int
	}
	var units []unit
	for _, u := range left.Running {
		if name, pod := unitName(string(u.ID)); u.End.Certainty != contention.Never && !ends(u, now) && !pod {
			units = append(units, unit{name, len(u.Holds)})
		}
	}
	slices.SortFunc(
		units,
		func(a, b unit) int { return cmp.Or(cmp.Compare(b.nodes, a.nodes), strings.Compare(a.name, b.name)) },
	)
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.name
	}
	return names
}

// start returns the expected start of a gang. Without a forecast, and for gangs that are not in it, only the gang's own
// verdict is known.
func (f *Forecast) start(v whatif.Verdict, now time.Time) *Start {
	switch {
	case v.State == whatif.Fits && v.Vacated:
		return &Start{Text: "when the victims of other gangs have left"}
	case v.State == whatif.Fits:
		return &Start{At: known(now), Text: "now"}
	case v.State == whatif.Moves:
		return &Start{Text: "when what is left of it has ended and its job has created it again"}
	case v.State == whatif.Preempts:
		return &Start{Text: "when its victims have left: at the end of their terminationGracePeriodSeconds"}
	case v.Shortfall != nil && v.Shortfall.Never:
		return &Start{Text: "never on this fleet"}
	}
	at, played := int64(direct.Never), false
	if f != nil {
		// The run starts an elastic gang with fewer members at once, where its verdict is that it waits for all: then
		// its place says more.
		if started, ok := f.starts[v.Gang.Name]; ok && started > now.Unix() {
			at, played = started, true
		}
	}
	own := v.Reserved
	if !played && own != nil && !own.Estimated && !own.At.IsZero() {
		at = own.At.Unix()
	}
	if at != direct.Never {
		instant := time.Unix(at, 0).UTC()
		return &Start{At: &instant, Text: moment(instant, now)}
	}
	if own != nil && own.Estimated {
		return &Start{Text: "estimated " + moment(own.At, now) + estimate(*own)}
	}
	return &Start{Text: "unknown: " + f.unknown(v)}
}

// usually parses the start range that the scheduler published; nil if none of it may still hold.
func usually(told standing.Start, now time.Time) *Usually {
	var out Usually
	for text, into := range map[string]*time.Time{told.Low: &out.From, told.Middle: &out.Half, told.High: &out.Until} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil
		}
		*into = at
	}
	if !out.Until.After(now) {
		return nil
	}
	return &out
}

// estimate explains the basis of an estimated start.
func estimate(own whatif.Reservation) string {
	var names, late []string
	for _, w := range own.Waits {
		name, _ := unitName(w.Name)
		switch {
		case w.Overdue:
			late = append(late, name)
		case w.Estimated:
			names = append(names, name)
		}
	}
	text := ""
	if len(late) > 0 {
		text += "; overdue: " + few(late)
	}
	if len(names) > 0 {
		text += "; no end is known of " + few(names) + ": " + howToTell
	}
	return text
}

// unknown explains why a gang's start is unknown.
func (f *Forecast) unknown(v whatif.Verdict) string {
	if v.Gang.Claims {
		return "no start is forecast for gangs that claim devices"
	}
	if f != nil && len(f.endless) > 0 {
		return "its room is held by " + few(f.endless) + ", whose end is not known; " + howToTell
	}
	return "nothing whose end is known makes room for it"
}

// few names the first of a list.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Changes lists the expected starts that another forecast has changed, but for the gangs named: a line for each, by
// name.
func (f *Forecast) Changes(after *Forecast, but []types.NamespacedName, now time.Time) []string {
	say := func(at int64) string {
		if at == direct.Never {
			return "at an unknown time"
		}
		return "at " + moment(time.Unix(at, 0), now)
	}
	var lines []string
	for name, then := range after.starts {
		before, waited := f.starts[name]
		switch {
		case slices.Contains(but, name) || waited && before == then:
		case waited:
			lines = append(lines, fmt.Sprintf("%s would start %s instead of %s", name, say(then), say(before)))
		default:
			lines = append(lines, fmt.Sprintf("%s would wait, and start %s", name, say(then)))
		}
	}
	for name, before := range f.starts {
		if _, waits := after.starts[name]; !waits && !slices.Contains(but, name) {
			lines = append(lines, fmt.Sprintf("%s would start now instead of %s", name, say(before)))
		}
	}
	slices.Sort(lines)
	return lines
}
