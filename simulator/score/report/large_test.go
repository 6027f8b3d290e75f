package report_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/report"
)

// TestWrite_LargeRunsKeepToTheirBudget writes the page of 100,000 jobs: a library of at most 1.2 MB and data of at most
// 3 MB.
func TestWrite_LargeRunsKeepToTheirBudget(t *testing.T) {
	s := many(t, 100_000)
	record := report.NewRecorder(s)
	r := rand.New(rand.NewPCG(3, 4))
	card := measure.Scorecard{Scheduler: "x", Classes: []measure.Class{{Name: "one node"}}}
	in := report.Input{Card: card, Record: record}
	var ends []engine.Event
	for i := range s.Jobs {
		at := s.Jobs[i].Submit
		for len(ends) > 60 {
			record.Happens(ends[0])
			ends = ends[1:]
		}
		nodes := make([]int, len(s.Jobs[i].Gang.Members))
		for rank := range nodes {
			nodes[rank] = r.IntN(s.Ledger.Len())
		}
		record.Happens(engine.Event{At: at, Kind: engine.Started, Job: i, Running: engine.None, Nodes: nodes})
		ends = append(ends, engine.Event{At: at + time.Minute, Kind: engine.Ended, Job: i, Running: engine.None})
		in.Outcomes = append(in.Outcomes, measure.Outcome{
			Job: i, ID: s.Jobs[i].ID, Class: "one node", Accelerators: s.Jobs[i].Accelerators,
			Wait: time.Duration(r.IntN(1e6)) * time.Second, Q: 1,
		})
	}
	for i := range 10_000 {
		series := &in.Series
		series.Seconds = append(series.Seconds, float64(i)*60)
		series.Used, series.Capacity = append(series.Used, r.Int64N(2304)), append(series.Capacity, 2304)
		series.Demanded = append(series.Demanded, r.Int64N(9999))
		series.Largest = append(series.Largest, r.Int64N(2304))
		series.Fragmentation = append(series.Fragmentation, r.Float64())
		series.Waiting = append(series.Waiting, r.IntN(9999))
		series.OldestSeconds = append(series.OldestSeconds, r.Float64()*1e6)
	}
	page, c := written(t, in)
	library := len(libraryText(t))
	t.Logf("library %d bytes, the rest %d", library, len(page)-library)
	if library > 1_200_000 || len(page)-library > 3_000_000 {
		t.Errorf("the page has %d bytes beside a library of %d", len(page)-library, library)
	}
	if len(c.Series.At) > 2000 || c.Series.At[0] != 0 || c.Series.At[len(c.Series.At)-1] != 9999*60 {
		t.Errorf("%d instants from %g", len(c.Series.At), c.Series.At[0])
	}
	// Some come onto nodes that are full, and have no square.
	shown := len(c.Map.Starts)
	if shown+c.Map.Omitted > 100_000 || shown < 50_000 || c.Map.Omitted == 0 || !strings.Contains(page, "leaves out") {
		t.Errorf("%d stays, %d omitted", len(c.Map.Starts), c.Map.Omitted)
	}
	if slices.ContainsFunc(c.Waits, func(w struct {
		Name string
		X, Y []float64
	},
	) bool {
		return len(w.X) > 202 || len(w.X) < 150
	}) {
		t.Error("a curve has too many points, or too few")
	}
}
