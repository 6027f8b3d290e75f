package direct_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// The sizes of a trace's jobs in GPUs, and the number of jobs in a hundred of each size: most jobs are small, most of
// the work is not.
func sizes() (gpus []int64, percent []int) {
	return []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, []int{40, 10, 8, 18, 8, 6, 4, 3, 2, 1}
}

// busy fills a scene with jobs that ask for more than the fleet has, by the load: run times are lognormal around twenty
// minutes, and deadlines one to three times that. Large jobs have members of eight GPUs.
func busy(scene direct.Scene, jobs int, load float64, seed uint64) direct.Scene {
	r := rand.New(rand.NewPCG(seed, 7))
	gpus, percent := sizes()
	largest := int64(scene.Ledger.Len()) * 8
	var work float64
	for n := range jobs {
		size, at := gpus[0], r.IntN(100)
		for i, share := range percent {
			if at -= share; at < 0 {
				size = gpus[i]
				break
			}
		}
		size = min(size, largest)
		runs := int64(min(max(1200*math.Exp(r.NormFloat64()*1.2), 30), 86400))
		perMember := min(size, 8)
		j := job(fmt.Sprintf("job-%06d", n), int(size/perMember), perMember, 0, runs)
		j.Promises = int64(float64(runs) * (1 + 2*r.Float64()))
		work += float64(size * runs)
		scene.Jobs = append(scene.Jobs, j)
	}
	span := work / load / float64(largest)
	for n := range scene.Jobs {
		j := &scene.Jobs[n]
		j.Arrives = int64(r.Float64() * span)
		j.Order.Since = time.Unix(j.Arrives, 0)
	}
	return scene
}

// BenchmarkReplay plays a trace of load 1.2, in which jobs wait nearly always.
func BenchmarkReplay(b *testing.B) {
	for _, nodes := range []int{125, 250, 500, 1000} {
		for _, discipline := range []direct.Discipline{direct.Promise, direct.Backfill, direct.Strict, direct.Greedy} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, discipline), func(b *testing.B) {
				scene := busy(fleet(b, nodes, 16), 4*nodes, 1.2, 1)
				var decisions, pods int
				for b.Loop() {
					result, err := direct.Run(scene, direct.Options{Discipline: discipline}, nil)
					if err != nil {
						b.Fatal(err)
					}
					decisions += result.Decisions
					for i, o := range result.Jobs {
						if o.Started != direct.Never {
							pods += len(scene.Jobs[i].Gang.Members)
						}
					}
				}
				b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(float64(pods)/b.Elapsed().Seconds(), "pods/s")
				b.ReportMetric(float64(decisions)/float64(b.N*len(scene.Jobs)), "decisions/job")
			})
		}
	}
}
