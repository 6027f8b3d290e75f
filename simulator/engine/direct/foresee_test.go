package direct_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	fleets "github.com/lockstep-project/lockstep/simulator/fleet"
	"github.com/lockstep-project/lockstep/simulator/scenario"
	"github.com/lockstep-project/lockstep/simulator/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/trace"
)

var (
	foreseeFlag = flag.String(
		"foresee",
		"",
		"the contest whose starts are forecast: philly-1.3 or c1; none by default",
	)
	foreseeEvery = flag.Int("foresee-every", 50, "for one in how many jobs that begin to wait a forecast is made")
	foreseeJobs  = flag.Int("foresee-jobs", 0, "how many jobs arrive; 0 for all of the trace")
)

// Jobs of a tenant take ten minutes. The third of three that need the whole fleet starts when two have run: after twenty minutes, and as long as the first has
// run already, less.
func TestOptions_Foresees(t *testing.T) {
	s := whole(t, 1)
	for i := range 20 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-%d", i), 1, 1000*i, 600, 0))
	}
	for i := range 3 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-%d", 100+i), 1, 50_000+60*i, 600, 0))
	}
	var told []direct.Foreseen
	perform(t, s, direct.Options{Learns: true, Foresees: direct.Foresees{
		Every: 1, Tell: func(f direct.Foreseen) { told = append(told, f) },
	}})
	if len(told) != 2 {
		t.Fatalf("forecasts: %+v", told)
	}
	for i, f := range told {
		wait := int64(540 * (i + 1)) // each arrives a minute after the one before
		if f.Outlook.Backlog < wait*8/10 || f.Outlook.Backlog > wait*12/10 {
			t.Errorf("%s waits %d s; the outlook at %d was %+v", s.Jobs[f.Job].ID, wait, f.At, f.Outlook)
		}
		if oldest := int64(60 * i); f.Outlook.Oldest != oldest {
			t.Errorf("%s finds a wait of %d s, not of %d s", s.Jobs[f.Job].ID, f.Outlook.Oldest, oldest)
		}
	}
}

// TestForesees_Report measures how often starts lie in the intervals that were forecast when jobs began to wait, and how sharp these are, beside forecasts
// by past waits alone, with the same correction. No job gives an estimate.
//
//	go test ./simulator/engine/direct -run Foresees_Report -v -foresee philly-1.3 -timeout 60m
func TestForesees_Report(t *testing.T) {
	inputs := map[string]struct {
		fleet, trace string
		load         float64
	}{"philly-1.3": {"h100-64", "philly", 1.3}, "c1": {"c1", "acme-seren", 2.7}}
	in, ok := inputs[*foreseeFlag]
	if !ok {
		t.Skip("no contest is named")
	}
	f, err := fleets.Open(in.fleet)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := trace.Open(in.trace, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := *foreseeJobs; n > 0 && n < len(jobs.Jobs) {
		jobs.Jobs = jobs.Jobs[:n]
	}
	s, err := importer.New(f, jobs, scenario.Options{Load: in.load})
	if err != nil {
		t.Fatal(err)
	}
	r := newReporter(s)
	options := direct.Options{
		Discipline: direct.Promise,
		Preempt:    true,
		Learns:     true,
		Foresees:   direct.Foresees{Every: *foreseeEvery, Tell: r.tell},
	}
	began := time.Now()
	if err := direct.NewEngine(options, time.Now).Run(t.Context(), s, r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d jobs in %v\n%s", *foreseeFlag, len(s.Jobs), time.Since(began).Round(time.Second), r)
}

// reporter compares forecasts with starts.
type reporter struct {
	scene *scenario.Scenario
	// ours are the forecasts, past those that know earlier waits only.
	ours, past *forecast.Starts
	open       map[int]claim
	// all are the waits that have ended.
	all []outcome
}

// claim is what was forecast of a wait.
type claim struct {
	at         int64
	ours, past forecast.Interval
}

// outcome is a claim with the wait in seconds.
type outcome struct {
	claim

	job  int
	wait int64
}

// score sums up how wrong intervals were.
type score struct {
	n, below, above int
	pinball, width  float64
}

func newReporter(s *scenario.Scenario) *reporter {
	return &reporter{scene: s, ours: forecast.NewStarts(), past: forecast.NewStarts(), open: make(map[int]claim)}
}

func (*reporter) Decides(engine.Decision) {}

func (r *reporter) Happens(e engine.Event) {
	if e.Kind != engine.Started {
		return
	}
	at := int64(e.At / time.Second)
	if c, told := r.open[e.Job]; told {
		delete(r.open, e.Job)
		r.ours.Started(r.scene.Jobs[e.Job].ID, at)
		r.past.Started(r.scene.Jobs[e.Job].ID, at)
		r.all = append(r.all, outcome{c, e.Job, at - c.at})
	}
}

func (r *reporter) tell(f direct.Foreseen) {
	id := r.scene.Jobs[f.Job].ID
	r.open[f.Job] = claim{
		f.At, r.ours.Tell(id, f.At, f.Outlook),
		r.past.Tell(id, f.At, forecast.Outlook{Accelerators: f.Outlook.Accelerators}),
	}
}

// add scores an interval: the pinball loss is the mean of those of its three quantiles.
func (s *score) add(of forecast.Interval, wait int64) {
	s.n++
	s.width += float64(of.High - of.Low)
	if wait < of.Low {
		s.below++
	}
	if wait > of.High {
		s.above++
	}
	for _, q := range []struct {
		bound int64
		of    float64
	}{{of.Low, 0.1}, {of.Middle, 0.5}, {of.High, 0.9}} {
		by := float64(wait - q.bound)
		s.pinball += max(q.of*by, (q.of-1)*by) / 3
	}
}

func (s *score) String() string {
	n := float64(max(s.n, 1))
	return fmt.Sprintf("covers %.1f %% (%.1f %% start earlier, %.1f %% later), pinball loss %.0f s, width %.0f s",
		100-100*float64(s.below+s.above)/n, 100*float64(s.below)/n, 100*float64(s.above)/n, s.pinball/n, s.width/n)
}

func (r *reporter) String() string {
	var b strings.Builder
	parts := []struct {
		name string
		has  func(i int) bool
	}{
		{"all", func(int) bool { return true }},
		{"first half", func(i int) bool { return i < len(r.all)/2 }},
		{"second half", func(i int) bool { return i >= len(r.all)/2 }},
	}
	for low, high := int64(0), int64(1); low < 1<<20; low, high = high, high*8 {
		parts = append(parts, struct {
			name string
			has  func(i int) bool
		}{fmt.Sprintf("%d-%d accelerators", low+1, high), func(i int) bool {
			n := r.scene.Jobs[r.all[i].job].Accelerators
			return n > low && n <= high
		}})
	}
	for _, part := range parts {
		var ours, past score
		for i, o := range r.all {
			if part.has(i) {
				ours.add(o.ours, o.wait)
				past.add(o.past, o.wait)
			}
		}
		if ours.n > 0 {
			fmt.Fprintf(&b, "%s, %d forecasts\n  forecast   %v\n  past waits %v\n", part.name, ours.n, &ours, &past)
		}
	}
	fmt.Fprintf(&b, "%d jobs still wait\n", len(r.open))
	return b.String()
}
