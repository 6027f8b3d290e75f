package trace_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

const week = 7 * 24 * time.Hour

// weeks is a trace of some whole weeks and a day, with a job every day that is called after its week and day.
func weeks(n int) trace.Trace {
	t := trace.Trace{Name: "recorded", Source: "us"}
	for day := range n*7 + 1 {
		t.Jobs = append(t.Jobs, trace.Job{
			ID: fmt.Sprintf("%d/%d", day/7, day%7), Submit: time.Duration(day) * 24 * time.Hour, Duration: time.Hour,
			Podsets: []trace.Podset{{Count: 1, GPUs: 1}},
		})
	}
	return t
}

// Every drawn week is one of the whole ones, complete and in its order; some appear twice and some not at all, by the
// seed.
func TestResample_WholeWeeksWithReplacement(t *testing.T) {
	const n = 6
	seen, twice := map[string]bool{}, false
	for seed := uint64(1); seed <= 20; seed++ {
		drawn, err := trace.Resample(weeks(n), seed)
		if err != nil {
			t.Fatal(err)
		}
		if len(drawn.Jobs) != n*7 || !drawn.Synthetic || !strings.Contains(drawn.Source, "us; of its 6 whole weeks") {
			t.Fatalf("%d jobs, synthetic %t, %s", len(drawn.Jobs), drawn.Synthetic, drawn.Source)
		}
		again, err := trace.Resample(weeks(n), seed)
		if err != nil || !bytes.Equal(written(t, again), written(t, drawn)) {
			t.Errorf("seed %d draws another trace the second time, %v", seed, err)
		}
		from := map[string]int{}
		for i, j := range drawn.Jobs {
			if want := time.Duration(i) * 24 * time.Hour; j.Submit != want {
				t.Fatalf("seed %d: %s comes at %s, want %s", seed, j.ID, j.Submit, want)
			}
			first, _, _ := strings.Cut(drawn.Jobs[i/7*7].ID, "/")
			if want := fmt.Sprintf("%s/%d-w%02d", first, i%7, i/7+1); j.ID != want {
				t.Fatalf("seed %d: day %d is %s, want %s", seed, i, j.ID, want)
			}
			if first == strconv.Itoa(n) {
				t.Fatalf("seed %d: the week that is not whole was drawn", seed)
			}
			seen[first] = true
			from[first]++
			twice = twice || from[first] > 7
		}
	}
	if len(seen) != n || !twice {
		t.Errorf("20 seeds drew weeks %v, one twice: %t", seen, twice)
	}
}

func TestResample_SeedZeroIsAsRecorded(t *testing.T) {
	short := weeks(1)
	got, err := trace.Resample(short, 0)
	if err != nil || !bytes.Equal(written(t, got), written(t, short)) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestResample_RefusesUndrawableWeeks(t *testing.T) {
	broken := weeks(3)
	broken.Events = []trace.Event{{Kind: trace.Fail, Nodes: []string{"n"}}}
	for want, tr := range map[string]trace.Trace{
		"trace recorded: weeks cannot be drawn of a trace that lasts 168h0m0s; use seed 0, as recorded, or a trace of two weeks or more": weeks(1),
		"trace recorded: weeks cannot be drawn of a trace with events of nodes; use seed 0, as recorded":                                 broken,
	} {
		if _, err := trace.Resample(tr, 3); !badinput.Is(err) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Philly's seeds differ as its weeks do, and the requests of a drawn job were recorded.
func TestResample_PhillyByWeeks(t *testing.T) {
	recorded, err := trace.Open("philly", 0)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]trace.Job{}
	for _, j := range recorded.Jobs {
		byID[j.ID] = j
	}
	drawn, err := trace.Open("philly", 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range drawn.Jobs {
		id, _, _ := strings.Cut(j.ID, "-w")
		was := byID[id]
		if was.Duration != j.Duration || was.GPUs() != j.GPUs() || was.Tenant != j.Tenant ||
			(j.Submit-was.Submit)%week != 0 {
			t.Fatalf("%+v was %+v", j, was)
		}
	}
	if last := drawn.Jobs[len(drawn.Jobs)-1].Submit; last >= 15*week || last < 14*week {
		t.Errorf("the last of 15 weeks ends at %s", last)
	}
}
