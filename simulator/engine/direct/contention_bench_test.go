package direct_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// BenchmarkContention plays the same traces with every discipline: 2,000 jobs of 1 to 512 GPUs that request 1.2 times
// the 128 nodes. It reports medians over five traces; the time is not meaningful.
func BenchmarkContention(b *testing.B) {
	for _, c := range []struct {
		name       string
		discipline direct.Discipline
		deadlines  bool
	}{
		{"strict", direct.Strict, true},
		{"greedy", direct.Greedy, true},
		{"backfill", direct.Backfill, true},
		{"backfill-no-deadlines", direct.Backfill, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				figures := map[string][]float64{}
				for seed := uint64(1); seed <= 5; seed++ {
					scene := busy(fleet(b, 128, 16), 2000, 1.2, seed)
					for i := range scene.Jobs {
						if !c.deadlines {
							scene.Jobs[i].Promises = 0
						}
					}
					result, err := direct.Run(scene, direct.Options{Discipline: c.discipline}, nil)
					if err != nil {
						b.Fatal(err)
					}
					for name, figure := range metrics(scene, result) {
						figures[name] = append(figures[name], figure)
					}
				}
				for name, all := range figures {
					slices.Sort(all)
					b.ReportMetric(all[len(all)/2], name)
				}
			}
		})
	}
}

// metrics sums up one trace.
func metrics(scene direct.Scene, result direct.Result) map[string]float64 {
	var all, large []int64
	for i, o := range result.Jobs {
		all = append(all, o.Waited)
		if scene.Jobs[i].Accelerators >= 256 {
			large = append(large, o.Waited)
		}
	}
	r := result.Reservations
	return map[string]float64{
		"%-in-use":        100 * result.Utilization,
		"s-wait-mean":     mean(all),
		"s-wait-p95":      float64(percentile(all, 95)),
		"s-wait-large":    mean(large),
		"s-wait-large-mx": float64(percentile(large, 100)),
		"h-makespan":      float64(result.Makespan) / 3600,
		"reservations":    float64(r.Leased - r.Unknown),
		"%-on-time":       100 * r.OnTime,
		"s-early-mean":    r.Mean,
		"s-early-p95":     float64(r.P95),
	}
}

func mean(all []int64) float64 {
	var sum int64
	for _, x := range all {
		sum += x
	}
	return float64(sum) / float64(len(all))
}

// percentile is the smallest that so many of a hundred do not exceed.
func percentile(all []int64, percent int) int64 {
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare)
	return sorted[(len(sorted)*percent+99)/100-1]
}
