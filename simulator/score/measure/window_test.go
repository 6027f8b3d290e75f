package measure_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// stream plays jobs of a node each that arrive at the given instants at one node, one after another; each runs 10 s.
func stream(tb testing.TB, submits []int) measure.Scorecard {
	tb.Helper()
	s := racks(tb, 1)
	for _, at := range submits {
		add(s, at, 10, 1, 4)
	}
	tally := listen(s)
	// come reports the jobs that arrived by an instant; the node is free from then on.
	came, free := 0, 0
	come := func(until int) {
		for ; came < len(submits) && submits[came] <= until; came++ {
			tally.job(submits[came], engine.Submitted, came)
		}
	}
	for job, at := range submits {
		start := max(at, free)
		come(start)
		tally.job(start, engine.Started, job, 0)
		free = start + 10
		come(free - 1)
		tally.job(free, engine.Ended, job)
	}
	return tally.card()
}

func every(n, distance int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i * distance
	}
	return at
}

func TestWindow_OfAStream(t *testing.T) {
	// 200 jobs of 10 s, one every 8 s: each waits 2 s longer than the one before it. The window is from the 21st, which
	// arrives at 160, to the last, at 1592; in all of it the node is in use, and from then on there is a job that
	// waits.
	card := stream(t, every(200, 8))
	if w := card.Window; w.Jobs != 180 || w.From != 160 || w.To != 1592 {
		t.Fatalf("the window is %+v", w)
	}
	equal(t, card, map[string]float64{
		"wait_seconds.mean":      (40 + 398) / 2.0,
		"wait_seconds.max":       398,
		"utilisation.mean":       1,
		"utilisation.busy_mean":  1,
		"gangs.finished":         200,
		"makespan_seconds":       2000,
		"largest_placeable.mean": 0,
	})
	if card.Utilization.BusySeconds != 1592-160 {
		t.Errorf("somebody waited for %v s", card.Utilization.BusySeconds)
	}
}

func TestWindow_WithoutAStream(t *testing.T) {
	few := stream(t, every(99, 8))
	if few.Window.Jobs != 99 || few.Window.From != 0 || few.Window.To != 990 ||
		!strings.Contains(few.Window.Rule, "fewer") {
		t.Errorf("the window of 99 jobs is %+v", few.Window)
	}
	burst := stream(t, append(make([]int, 21), every(200, 8)[21:]...))
	if burst.Window.Jobs != 200 || burst.Window.From != 0 || !strings.Contains(burst.Window.Rule, "one instant") {
		t.Errorf("the window of a burst is %+v", burst.Window)
	}
	// A node is in use until the last of them ends, at 2000.
	equal(t, burst, map[string]float64{"utilisation.mean": 1, "makespan_seconds": 2000})
}

func TestTally_NothingHappens(t *testing.T) {
	s := racks(t, 2)
	equal(t, listen(s).card(), map[string]float64{
		"gangs.submitted":       0,
		"wait_seconds.mean":     0,
		"utilisation.mean":      0,
		"utilisation.busy_mean": 0,
		"quality.mean_q":        1,
		"largest_placeable.min": 8,
		"fragmentation.mean":    0,
		"decision_ms.p99":       0,
	})
	if series := listen(s).Series(); len(series.Seconds) != 1 || series.Capacity[0] != 8 {
		t.Errorf("a run without events has the series %+v", series)
	}
}

func TestSeries_StaysShortForLongRuns(t *testing.T) {
	s := racks(t, 2)
	add(s, 0, 10, 1, 4) // an estimate of a short run is far exceeded
	add(s, 0, 10, 1, 4)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Started, 0, 0)
	tally.job(10, engine.Ended, 0)
	const end = 40_000_000
	tally.job(end/2, engine.Submitted, 1)
	tally.job(end, engine.Started, 1, 0)
	series := tally.Series()
	n := len(series.Seconds)
	if n > measure.MostPoints || n < measure.MostPoints/2 || series.Seconds[n-1] != end || series.Used[0] != 4 {
		t.Fatalf("%d points, from %d in use to %v s", n, series.Used[0], series.Seconds[n-1])
	}
	for i := 1; i < n-1; i++ {
		at := series.Seconds[i]
		if at != series.Seconds[1]*float64(i) || series.Used[i] != 0 {
			t.Fatalf("point %d is at %v s, %d in use", i, at, series.Used[i])
		}
		if want := max(at-end/2, 0); series.OldestSeconds[i] != want || (series.Waiting[i] == 1) != (at >= end/2) {
			t.Fatalf("at %v s %d wait, the oldest for %v s", at, series.Waiting[i], series.OldestSeconds[i])
		}
	}
}

func TestOutcomes_SizeClassesOfTheJobs(t *testing.T) {
	s := racks(t, 2) // 4 accelerators a node
	for _, size := range []struct {
		members int
		gpus    int64
	}{{1, 0}, {1, 1}, {1, 2}, {1, 4}, {2, 4}, {16, 1}, {17, 1}, {64, 1}, {65, 1}, {256, 1}, {257, 1}, {0, 0}} {
		add(s, 0, 10, size.members, size.gpus)
	}
	tally := listen(s)
	for i := range s.Jobs {
		tally.job(0, engine.Submitted, i)
	}
	var got []string
	for _, o := range tally.Outcomes() {
		got = append(got, o.Class)
	}
	want := []string{
		"no GPU", "1 GPU", "one node", "one node", "2-4 nodes", "2-4 nodes", "5-16 nodes", "5-16 nodes",
		"17-64 nodes", "17-64 nodes", "more than 64 nodes", "no GPU",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the classes are %v", got)
	}
	if card := tally.card(); len(card.Classes) != 7 || card.Gangs.Pending != len(s.Jobs) {
		t.Errorf("%d classes have jobs, %d jobs wait", len(card.Classes), card.Gangs.Pending)
	}
}
