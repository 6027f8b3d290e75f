package measure_test

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// end is the time at which a job ends.
type end struct {
	at  int
	job int
}

type ends []end

func (e *ends) Len() int           { return len(*e) }
func (e *ends) Less(i, j int) bool { return (*e)[i].at < (*e)[j].at }
func (e *ends) Swap(i, j int)      { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *ends) Push(x any)         { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	out := (*e)[last]
	*e = (*e)[:last]
	return out
}

// busy is a stream of jobs on 1,024 nodes, and its events: first come, first served, on the first nodes with room. Of
// ten jobs eight have one accelerator, one a node, and one 2 to 16 nodes.
func busy(tb testing.TB, jobs int) (*scenario.Scenario, []engine.Event) {
	tb.Helper()
	const nodes = 1024
	s := racks(tb, nodes)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range jobs {
		members, gpus := 1, int64(1)
		switch r.IntN(10) {
		case 0:
			members, gpus = 2+r.IntN(15), 4
		case 1:
			gpus = 4
		}
		add(s, i*2, 60+r.IntN(3000), members, gpus)
	}
	var events []engine.Event
	var running ends
	free, low := slices.Repeat([]int64{4}, nodes), 0
	places, now := make([][]int, jobs), 0
	say := func(kind engine.Kind, job int) {
		e := engine.Event{At: seconds(now), Kind: kind, Job: job, Running: engine.None}
		if kind == engine.Started {
			e.Nodes = places[job]
		}
		events = append(events, e)
	}
	fits := func(job int) []int {
		g := s.Jobs[job].Gang
		var out []int
		for node := low; node < nodes && len(out) < len(g.Members); node++ {
			if free[node] >= g.Shapes[0].Demand[accelerator] {
				out = append(out, node)
			}
		}
		if len(out) < len(g.Members) {
			return nil
		}
		return out
	}
	finish := func() {
		e := heap.Pop(&running).(end)
		now = max(now, e.at)
		for _, node := range places[e.job] {
			free[node] += s.Jobs[e.job].Gang.Shapes[0].Demand[accelerator]
		}
		say(engine.Ended, e.job)
	}
	for job := range jobs {
		for len(running) > 0 && running[0].at <= int(s.Jobs[job].Submit.Seconds()) {
			finish()
		}
		now = max(now, int(s.Jobs[job].Submit.Seconds()))
		say(engine.Submitted, job)
		for places[job] = fits(job); places[job] == nil; places[job] = fits(job) {
			finish()
		}
		for _, node := range places[job] {
			free[node] -= s.Jobs[job].Gang.Shapes[0].Demand[accelerator]
		}
		say(engine.Started, job)
		heap.Push(&running, end{now + int(s.Jobs[job].Duration.Seconds()), job})
	}
	for len(running) > 0 {
		finish()
	}
	slices.SortStableFunc(events, func(a, b engine.Event) int { return cmp.Compare(a.At, b.At) })
	return s, events
}

// BenchmarkTally counts 100,000 jobs: the cost of an event, and the tally's memory when all is over.
func BenchmarkTally(b *testing.B) {
	s, events := busy(b, 100_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		tally := measure.New(s, measure.Header{})
		for _, e := range events {
			tally.Happens(e)
		}
		card := tally.Scorecard(time.Second)
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		b.ReportMetric(card.Utilization.Mean, "allocation")
		b.ReportMetric(float64(card.Violations.DoubleBooking), "violations")
		b.ReportMetric(float64(card.Quality.Samples), "samples")
		runtime.KeepAlive(tally)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}
