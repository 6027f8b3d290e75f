package progress

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Unwatched returns a run that is not drawn: for tests of the drawing.
func Unwatched(clk clock.WithTicker, name string, number, runs int, s *scenario.Scenario) *Run {
	return newRun(&Progress{clock: clk, runs: runs}, name, number, s)
}

// Look returns the present view of the run.
func (r *Run) Look() View {
	if !r.latest.Load().Over {
		r.leave(false)
	}
	return r.view(r.shown.clock.Now())
}

// Picture, PlainLine and JSONLine return the output for views; a picture has no colors.
func Picture(views []View, width, height int, footer string) string {
	return picture{width: width, height: height, views: views, footer: footer}.String()
}

func PlainLine(v View) (string, error) { return plainLine(&v) }

func JSONLine(v View) (string, error) { return jsonLine(&v) }

// Latencies are percentiles, by the histogram.
func Latencies(of []time.Duration, quantiles ...float64) []time.Duration {
	var h histogram
	for _, d := range of {
		h.add(d)
	}
	var out []time.Duration
	for _, q := range quantiles {
		out = append(out, h.quantile(q))
	}
	return out
}

// Shares are the bins of a history in which the part that is in use changes at instants.
func Shares(uses map[time.Duration]int64, instants []time.Duration, of int64) []float64 {
	var h history
	for i, at := range instants[:len(instants)-1] {
		h.add(at, instants[i+1], uses[at], of)
	}
	return h.shares()
}

// Paused reports whether a reader wants runs to wait.
func (p *Progress) Paused() bool { return p.paused() }

// Latest is the run's last snapshot.
func (r *Run) Latest() *Snapshot { return r.latest.Load() }

// Short, Span, Millis and Grouped format numbers.
func Short(f float64) string { return short(f) }

func Span(d time.Duration) string { return span(d) }

func Millis(d time.Duration) string { return latency(d) }

func Grouped(n int64) string { return grouped(n) }
