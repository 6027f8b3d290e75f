package direct_test

import (
	"flag"
	"fmt"
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
		if middle := f.Starts[len(f.Starts)/2] - f.At; middle < wait*8/10 || middle > wait*12/10 {
			t.Errorf("%s waits %d s; forecast at %d were %v", s.Jobs[f.Job].ID, wait, f.At, f.Starts)
		}
	}
}

// TestForesees_Report measures how often starts lie in the intervals that were told when jobs began to wait, and how sharp these are, beside the quantiles of past
// waits. No job gives an estimate.
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
		Preempt:  true,
		Learns:   true,
		Foresees: direct.Foresees{Every: *foreseeEvery, Tell: r.tell},
	}
	began := time.Now()
	if err := direct.NewEngine(options, time.Now).Run(t.Context(), s, r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d jobs in %v\n%s", *foreseeFlag, len(s.Jobs), time.Since(began).Round(time.Second), r)
}

// reporter compares forecasts with starts.
type reporter struct {
	scene  *scenario.Scenario
	starts forecast.Starts
	waits  *forecast.History
	since  map[int]int64
	open   map[int]claim
	// ours, raw and past are the scores of corrected intervals, of the samples alone, and of past waits.
	ours, raw, past score
}

// claim is what was told of a wait.
type claim struct {
	told      forecast.Told
	raw, past forecast.Interval
	known     bool
}

// score sums up how wrong intervals were.
type score struct {
	n, below, above int
	pinball, width  float64
}

func newReporter(s *scenario.Scenario) *reporter {
	return &reporter{scene: s, waits: forecast.New(), since: make(map[int]int64), open: make(map[int]claim)}
}

func (*reporter) Decides(engine.Decision) {}

func (r *reporter) Happens(e engine.Event) {
	at := int64(e.At / time.Second)
	switch e.Kind {
	case engine.Refused:
		r.since[e.Job] = at
	case engine.Started:
		since, waited := r.since[e.Job]
		if !waited {
			return
		}
		delete(r.since, e.Job)
		wait := at - since
		r.waits.Ended(r.key(e.Job), wait)
		if c, told := r.open[e.Job]; told {
			delete(r.open, e.Job)
			r.starts.Started(c.told, wait)
			if c.known {
				r.ours.add(c.told.Interval, wait)
				r.raw.add(c.raw, wait)
				r.past.add(c.past, wait)
			}
		}
	default:
	}
}

func (r *reporter) key(job int) forecast.Key {
	of := &r.scene.Jobs[job]
	return forecast.Key{Namespace: of.Tenant, Size: of.Accelerators}
}

func (r *reporter) tell(f direct.Foreseen) {
	waits := make([]int64, len(f.Starts))
	for i, at := range f.Starts {
		waits[i] = min(at-f.At, 1<<30)
	}
	c := claim{told: r.starts.Tell(waits), raw: forecast.Interval{
		Low: waits[0], Middle: waits[len(waits)/2], High: waits[len(waits)-1],
	}}
	past := r.waits.Of(r.key(f.Job))
	c.past.Low, c.known = past.Quantile(forecast.LowQuantile, 0)
	c.past.Middle, _ = past.Quantile(500, 0)
	c.past.High, _ = past.Quantile(forecast.HighQuantile, 0)
	r.open[f.Job] = c
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
	return fmt.Sprintf("%d forecasts\ncorrected  %v\nsamples    %v\npast waits %v", r.ours.n, &r.ours, &r.raw, &r.past)
}
