package kube_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

var (
	long   = flag.Bool("long", false, "play more and longer scenes")
	first  = flag.Uint64("first", 0, "the first seed of random scenarios")
	seeds  = flag.Uint64("seeds", 4, "how many random scenarios to play")
	others = flag.Uint64(
		"others",
		2,
		"how many random scenarios with graces, with suspensions, and with costs, to play",
	)
	size = flag.Int("gangs", 600, "gangs in each random scenario")
)

// rack is the level of a GB200 NVL72 rack in the default fleet.
const rack = "clique"

// whole is a job that asks for whole trays of a GB200 rack.
func whole(id string, submit, duration time.Duration, trays int) trace.Job {
	return trace.Job{
		ID: id, Submit: submit, Duration: duration, Preemptible: true,
		Podsets: []trace.Podset{{Count: trays, GPUs: 4, CPU: 1000, Memory: 1 << 30}},
	}
}

// within is a job that has to be in one domain of a level.
func within(level string, j trace.Job) trace.Job {
	j.Required = level
	return j
}

// set makes a scene of a fleet.
func set(tb testing.TB, name string, options scenario.Options, t trace.Trace) *scenario.Scenario {
	tb.Helper()
	f, err := fleet.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	slices.SortStableFunc(t.Jobs, func(a, b trace.Job) int { return int(a.Submit - b.Submit) })
	s, err := importer.New(f, t, options)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// record holds the reports of an engine.
type record struct {
	events    []engine.Event
	decisions []engine.Decision
}

func (r *record) Happens(e engine.Event) {
	e.Nodes = slices.Clone(e.Nodes)
	r.events = append(r.events, e)
}

func (r *record) Decides(d engine.Decision) { r.decisions = append(r.decisions, d) }

// play plays a scene with a profile.
func play(tb testing.TB, s *scenario.Scenario, profile kube.Profile) *record {
	tb.Helper()
	return playWith(tb, s, kube.Options{Profile: profile, Clock: clock.RealClock{}})
}

func playWith(tb testing.TB, s *scenario.Scenario, options kube.Options) *record {
	tb.Helper()
	e, err := kube.New(options)
	if err != nil {
		tb.Fatal(err)
	}
	return run(tb.Context(), tb, s, e)
}

func run(ctx context.Context, tb testing.TB, s *scenario.Scenario, e engine.Engine) *record {
	tb.Helper()
	r := &record{}
	if err := e.Run(ctx, s, r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// eventLog is the events as lines, but for Leased and Refused: the instant, the kind and the job.
func (r *record) eventLog(s *scenario.Scenario) []string {
	var lines []string
	for _, e := range r.events {
		if e.Kind == engine.Leased || e.Kind == engine.Refused {
			continue
		}
		lines = append(lines, line(s, e))
	}
	return lines
}

func line(s *scenario.Scenario, e engine.Event) string {
	who := ""
	switch {
	case e.Job != engine.None:
		who = " " + s.Jobs[e.Job].ID
	case e.Running != engine.None:
		who = " " + s.Running[e.Running].Name
	}
	return fmt.Sprintf("%s %s%s", e.At, e.Kind, who)
}

// expect compares an event log with the expected one, line by line.
func expect(t *testing.T, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n"); text != strings.TrimSpace(want) {
		t.Errorf("it happened:\n%s\nwant:\n%s", text, strings.TrimSpace(want))
	}
}

// starts are the nodes by rank of each job's last start, by name.
func (r *record) starts(s *scenario.Scenario) map[string][]string {
	out := make(map[string][]string)
	for _, e := range r.events {
		if e.Kind != engine.Started {
			continue
		}
		names := make([]string, len(e.Nodes))
		for rank, at := range e.Nodes {
			names[rank] = s.Ledger.Tree.Node(at)
		}
		out[s.Jobs[e.Job].ID] = names
	}
	return out
}
