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
	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/topology"
)

// howToTell is what makes an end known.
const howToTell = "an activeDeadlineSeconds, or a trainer that reports its status, would tell"

// Forecast is when those who wait are expected to start: in a run of the queue in which what runs ends when it is expected to, who
// starts runs for as long as its deadline lets it, and nobody else comes.
type Forecast struct {
	starts map[types.NamespacedName]int64
	// endless are those that run and of which nobody knows when they end, the largest first.
	endless []string
}

// NewForecast plays the queue. The error is that of a fleet that cannot be read.
func NewForecast(ctx context.Context, r *whatif.WhatIf) (*Forecast, error) {
	left, err := r.Scene(ctx)
	if err != nil {
		return nil, err
	}
	f := &Forecast{starts: make(map[types.NamespacedName]int64)}
	f.endless = endless(left)
	if len(left.Waiting) == 0 {
		return f, nil
	}
	scene := direct.Scene{Now: r.Now().Unix(), Ledger: left.Ledger, Accelerator: left.Accelerator}
	for _, u := range left.Running {
		scene.Running = append(scene.Running, runningOf(u, scene.Now))
	}
	for _, w := range left.Waiting {
		scene.Jobs = append(scene.Jobs, jobOf(w, scene.Now))
	}
	result, err := direct.Run(scene, direct.Options{Discipline: direct.Backfill}, nil)
	if err != nil {
		return nil, fmt.Errorf("playing the queue: %w", err)
	}
	for i, job := range result.Jobs {
		f.starts[left.Waiting[i].Name] = job.Started
	}
	return f, nil
}

// runningOf is what runs. What has no known end does not end in the forecast, so that no start is promised that depends on it.
func runningOf(u topology.Running, now int64) direct.Running {
	r := direct.Running{Name: u.Name, Holds: u.Holds, Started: now, Ends: direct.Forever}
	switch u.End {
	case topology.EndUnknown:
		r.Expected.Certainty = contention.Never
	case decision.Someday:
		r.Expected.Certainty = contention.Unknown
	default:
		r.Expected, r.Ends = contention.End{At: u.End, Certainty: contention.Reported}, u.End
	}
	return r
}

// jobOf is a gang that waits already. Of what has no deadline nobody knows when it ends.
func jobOf(w whatif.Waiting, now int64) direct.Job {
	job := direct.Job{
		Name: w.Name.String(), Order: w.Order, Gang: w.Ask.Gang, Needed: w.Ask.Needed, Arrives: now,
		Accelerators: w.Accelerators, Runs: direct.Forever,
	}
	if end := w.Ask.End; end < decision.Someday && end > now {
		job.Runs, job.Promises = end-now, end-now
	}
	return job
}

func endless(left whatif.Scene) []string {
	type unit struct {
		name  string
		nodes int
	}
	var units []unit
	for _, r := range left.Running {
		if name, pod := unitName(r.Name); r.End == decision.Someday && !pod {
			units = append(units, unit{name, len(r.Holds)})
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

// start says when a gang starts. Without a forecast, and of gangs that are not in it, only that is known which
// the gang's own verdict tells.
func (f *Forecast) start(v whatif.Verdict, now time.Time) *Start {
	switch {
	case v.State == whatif.Fits:
		return &Start{At: known(now), Text: "now"}
	case v.State == whatif.Moves:
		return &Start{Text: "when what is left of it has ended and its job has made it anew"}
	case v.State == whatif.Preempts:
		return &Start{Text: "when its victims have left: at the end of their terminationGracePeriodSeconds"}
	case v.Shortfall != nil && v.Shortfall.Never:
		return &Start{Text: "never on this fleet"}
	}
	at, played := int64(direct.Never), false
	if f != nil {
		if started, ok := f.starts[v.Gang.Name]; ok {
			at, played = started, true
		}
	}
	if k := v.Kept; !played && k != nil && v.Behind == nil && !k.At.IsZero() {
		at = k.At.Unix()
	}
	if at != direct.Never {
		instant := time.Unix(at, 0).UTC()
		if !instant.After(now) {
			return &Start{Text: "as soon as " + overdue(v) + " has ended, which should have been before now"}
		}
		return &Start{At: &instant, Text: moment(instant, now)}
	}
	return &Start{Text: "unknown: " + f.unknown(v)}
}

// overdue is whom a gang waits for although it should be over.
func overdue(v whatif.Verdict) string {
	if v.Kept == nil || len(v.Kept.Waits) == 0 {
		return "what holds its place"
	}
	name, _ := unitName(v.Kept.Waits[0].Name)
	return name
}

// unknown says why nobody knows when a gang starts.
func (f *Forecast) unknown(v whatif.Verdict) string {
	var names []string
	if v.Kept != nil {
		for _, w := range v.Kept.Waits {
			if name, pod := unitName(w.Name); w.End.IsZero() && !pod {
				names = append(names, name)
			}
		}
	}
	whose := "it waits for "
	if v.Behind != nil {
		whose = v.Kept.For.String() + " is before it, and waits for "
	}
	if v.Gang.Claims && (v.Kept == nil || v.Behind != nil) {
		return "of gangs that claim devices only the first of the queue is looked ahead for"
	}
	if len(names) == 0 && f != nil {
		names, whose = f.endless, "its room is held by "
	}
	if len(names) == 0 {
		return "nothing whose end is known makes room for it"
	}
	return whose + few(names) + ", whose end nobody knows; " + howToTell
}

// few names the first of a list.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Changes says whose expected start another forecast has changed, but for the gangs named: a line for each, by name.
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
