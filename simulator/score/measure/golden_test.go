package measure_test

import (
	"encoding/json"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// TestGolden prints scorecards and series as others read them: their names are a contract.
func TestGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/three", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		tally := three(t, []int{0, 2}, []int{0, 2, 1, 3})
		var what any
		switch d.Cmd {
		case "scorecard":
			what = tally.card()
		case "series":
			what = thin(tally)
		default:
			d.Fatalf(t, "there is no %s", d.Cmd)
		}
		out, err := json.MarshalIndent(what, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return string(out) + "\n"
	})
}

// thin is every thirtieth point of the series, and the last one, by column.
func thin(tally told) map[string][]any {
	text, err := json.Marshal(tally.Series())
	if err != nil {
		return nil
	}
	var columns, out map[string][]any = nil, make(map[string][]any)
	if err := json.Unmarshal(text, &columns); err != nil {
		return nil
	}
	for name, column := range columns {
		for i, value := range column {
			if i%30 == 0 {
				out[name] = append(out[name], value)
			}
		}
	}
	return out
}

func TestTally_JobsThatNeverEnd(t *testing.T) {
	s := racks(t, 2)
	add(s, 5, 10, 1, 4)
	add(s, 5, 10, 2, 4)
	s.Jobs[0].Duration, s.Jobs[1].Duration = scenario.Forever, scenario.Forever
	tally := listen(s)
	tally.job(5, "submitted", 0)
	tally.job(5, "started", 0, 0)
	tally.job(5, "submitted", 1)
	tally.job(65, "refused", 1)
	equal(t, tally.card(), map[string]float64{
		"bounded_slowdown.mean":          1,
		"by_gpu_hours.wait_seconds_mean": 0,
		"utilisation.mean":               0.5,
		"wait_seconds.max":               60,
	})
	if n := len(tally.Series().Seconds); n < 60 {
		t.Errorf("a run of 65 s has a series of %d points", n)
	}
}
