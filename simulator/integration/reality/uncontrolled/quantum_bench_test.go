package uncontrolled_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/uncontrolled"
)

// BenchmarkPlay_Quantum measures the effect of coarse instants: mean waits of twenty replays of a plan, of all gangs
// and of those of one node without a deadline, with unchanged instants, and with instants and run times of a second, of
// two and of four.
//
//	go test ./simulator/integration/reality/uncontrolled -run '^$' -bench Quantum -benchtime 1x
func BenchmarkPlay_Quantum(b *testing.B) {
	const replays = 20
	for seed := range uint64(2) {
		for _, quantum := range []time.Duration{time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
			b.Run(fmt.Sprintf("seed=%d/quantum=%s", seed+1, quantum), func(b *testing.B) {
				for b.Loop() {
					var all, small waits
					for number := range uint64(replays) {
						plan := rounded(uncontrolled.Draw(seed+1).Jitter(number+1), quantum)
						course, err := uncontrolled.Play(
							b.Context(), player(b, "direct"), machines(b), plan, uncontrolled.Startup{})
						if err != nil {
							b.Fatal(err)
						}
						for i := range plan.Gangs {
							all.add(course.Fates[i].Wait())
							if course.Fates[i].Small {
								small.add(course.Fates[i].Wait())
							}
						}
					}
					b.ReportMetric(all.mean(), "s-wait")
					b.ReportMetric(small.mean(), "s-wait-one-node")
				}
			})
		}
	}
}

// rounded returns a plan whose instants and run times are multiples of a quantum.
func rounded(plan uncontrolled.Plan, quantum time.Duration) uncontrolled.Plan {
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		g.Submit, g.RunTime = g.Submit.Round(quantum), g.RunTime.Round(quantum)
	}
	return plan
}

// waits sums up.
type waits struct {
	n   int
	sum time.Duration
}

func (w *waits) add(wait time.Duration) { w.n, w.sum = w.n+1, w.sum+wait }

func (w *waits) mean() float64 { return w.sum.Seconds() / float64(w.n) }
