package direct_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	fleets "github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

var foreseeEvery = flag.Int("foresee-every", 1, "for one in how many jobs that begin to wait a forecast is made")

// BenchmarkForesees measures the share of starts within the intervals that were forecast when jobs began to wait, and
// the sharpness of these: beside forecasts by past waits alone with the same correction, and beside the quantiles of
// past waits of the same tenant and size. No job gives an estimate.
//
//	go test ./simulator/engine/direct -run '^$' -bench Foresees -benchtime 1x -timeout 60m
func BenchmarkForesees(b *testing.B) {
	for _, in := range []struct {
		name, fleet, trace string
		load               float64
	}{{"c1", "c1", "acme-seren", 2.7}, {"philly-1.3", "h100-64", "philly", 1.3}} {
		for seed := range uint64(3) {
			b.Run(fmt.Sprintf("%s/seed=%d", in.name, seed+1), func(b *testing.B) {
				for b.Loop() {
					r := newReporter(foreseen(b, in.fleet, in.trace, in.load, seed+1))
					options := direct.Options{
						Discipline: direct.Promise, Preempt: true, Learns: true,
						Foresees: direct.Foresees{Every: *foreseeEvery, Tell: r.tell},
					}
					if err := direct.NewEngine(options, time.Now).Run(b.Context(), r.scene, r); err != nil {
						b.Fatal(err)
					}
					fmt.Fprintf(
						os.Stdout,
						"%s, seed %d\n%s",
						in.name,
						seed+1,
						r,
					) // a log of more than ten lines would be cut off
				}
			})
		}
	}
}

// foreseen returns the scenario of a comparison without estimates.
func foreseen(b *testing.B, fleet, name string, load float64, seed uint64) *scenario.Scenario {
	b.Helper()
	f, err := fleets.Open(fleet)
	if err != nil {
		b.Fatal(err)
	}
	jobs, err := trace.Open(name, seed)
	if err != nil {
		b.Fatal(err)
	}
	s, err := importer.New(f, jobs, scenario.Options{Seed: seed, Load: load})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// reporter compares forecasts with starts.
type reporter struct {
	scene *scenario.Scenario
	// ours are the forecasts, past those that know earlier waits only, with the same correction.
	ours, past *forecast.Starts
	// waits are those that have ended, by tenant and size: their quantiles are forecasts, too.
	waits *forecast.History
	open  map[int]claim
	// all are the waits that have ended.
	all []outcome
}

// claim is a forecast of a wait.
type claim struct {
	at                int64
	ours, past, class forecast.Interval
	// known is set if a job of the class has waited before.
	known bool
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
	return &reporter{
		scene: s,
		ours:  forecast.NewStarts(),
		past:  forecast.NewStarts(),
		waits: forecast.New(),
		open:  make(map[int]claim),
	}
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
		r.waits.Ended(r.class(e.Job), at-c.at)
		r.all = append(r.all, outcome{c, e.Job, at - c.at})
	}
}

// class returns the key that a job shares with others that wait about as long.
func (r *reporter) class(job int) forecast.Key {
	of := &r.scene.Jobs[job]
	return forecast.Key{Namespace: of.Tenant, Size: of.Accelerators}
}

func (r *reporter) tell(f direct.Foreseen) {
	id := r.scene.Jobs[f.Job].ID
	c := claim{
		at: f.At, ours: r.ours.Tell(id, f.At, f.Outlook),
		past: r.past.Tell(id, f.At, forecast.Outlook{Accelerators: f.Outlook.Accelerators}),
	}
	of := r.waits.Of(r.class(f.Job))
	c.class.Low, c.known = of.Quantile(forecast.LowQuantile, 0)
	c.class.Middle, _ = of.Quantile(500, 0)
	c.class.High, _ = of.Quantile(forecast.HighQuantile, 0)
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
		var ours, past, class score
		for i, o := range r.all {
			if part.has(i) && o.known {
				ours.add(o.ours, o.wait)
				past.add(o.past, o.wait)
				class.add(o.class, o.wait)
			}
		}
		if ours.n > 0 {
			fmt.Fprintf(
				&b,
				"%s, %d forecasts\n  forecast             %v\n  past waits           %v\n  quantiles of a class %v\n",
				part.name,
				ours.n,
				&ours,
				&past,
				&class,
			)
		}
	}
	fmt.Fprintf(&b, "%d jobs still wait\n", len(r.open))
	return b.String()
}
