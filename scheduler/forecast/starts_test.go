package forecast_test

import (
	"math/rand/v2"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
)

// Whatever the samples are wrong by, and however late a wait is known, eight in ten waits lie in the interval in the end, and half below its middle.
func TestStarts_IntervalsHold(t *testing.T) {
	for name, of := range map[string]struct{ bias, spread float64 }{
		"too short": {0.3, 1}, "too long": {4, 1}, "too sure": {1, 0.05}, "too unsure": {1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 10))
			var s forecast.Starts
			type pending struct {
				told   forecast.Told
				waited int64
			}
			var open []pending
			const n = 20_000
			within, below := 0, 0
			for range n {
				middle := 600 + r.ExpFloat64()*7200
				samples := make([]int64, 9)
				for i := range samples {
					samples[i] = int64(middle * of.bias * (1 + of.spread*float64(i)/8))
				}
				waited := int64(middle * (0.5 + r.ExpFloat64()))
				told := s.Tell(samples)
				if told.Low > told.Middle || told.Middle > told.High || told.Low < 0 {
					t.Fatalf("told is %+v", told.Interval)
				}
				if told.Low <= waited && waited <= told.High {
					within++
				}
				if waited <= told.Middle {
					below++
				}
				if open = append(open, pending{told, waited}); len(open) > 50 { // known late, the longest last
					at := 0
					for i := range open {
						if open[i].waited < open[at].waited {
							at = i
						}
					}
					s.Started(open[at].told, open[at].waited)
					open = append(open[:at], open[at+1:]...)
				}
			}
			if part := float64(within) / n; part < 0.77 || part > 0.83 {
				t.Errorf("%.3f lie in the interval", part)
			}
			if part := float64(below) / n; part < 0.47 || part > 0.53 {
				t.Errorf("%.3f lie below the middle", part)
			}
		})
	}
}
