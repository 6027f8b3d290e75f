package schedperf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/schedperf"
)

// A run of the short workload takes a minute, one of the long ten; that of the broken fails with Lockstep.
func TestRounds(t *testing.T) {
	workload := func(name string) schedperf.Workload { return schedperf.Workload{Case: name, Name: "w"} }
	short, long, broken := workload("short"), workload("long"), workload("broken")
	both := func(name string, runs int) []string {
		return []string{fmt.Sprintf("%s/w native %d", name, runs), fmt.Sprintf("%s/w lockstep %d", name, runs)}
	}
	for name, test := range map[string]struct {
		budget    time.Duration
		workloads []schedperf.Workload
		// runs are as given to Measure, records with their number of runs.
		runs, records []string
		failed        bool
	}{
		"in turn": {
			budget: time.Hour, workloads: []schedperf.Workload{short},
			runs:    []string{"short native 1", "short lockstep 1", "short native 2", "short lockstep 2"},
			records: both("short", 2),
		},
		"in rounds": {
			budget: time.Hour, workloads: []schedperf.Workload{short, long},
			runs: []string{
				"short native 1", "short lockstep 1", "long native 1", "long lockstep 1",
				"short native 2", "short lockstep 2", "long native 2", "long lockstep 2",
			},
			records: append(both("short", 2), both("long", 2)...),
		},
		"what would take too long is left out of the second": {
			budget: 40 * time.Minute, workloads: []schedperf.Workload{long, short},
			runs: []string{
				"long native 1", "long lockstep 1", "short native 1", "short lockstep 1",
				"short native 2", "short lockstep 2",
			},
			records: append(both("long", 1), both("short", 2)...),
		},
		"the first round is run anyway": {
			budget: 0, workloads: []schedperf.Workload{long, short},
			runs:    []string{"long native 1", "long lockstep 1", "short native 1", "short lockstep 1"},
			records: append(both("long", 1), both("short", 1)...),
		},
		"what failed is not run again": {
			budget: time.Hour, workloads: []schedperf.Workload{broken},
			runs:    []string{"broken native 1", "broken lockstep 1", "broken native 2"},
			records: []string{"broken/w native 2"}, failed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			var runs []string
			var progress bytes.Buffer
			rounds := schedperf.Rounds{
				Count:    2,
				Budget:   test.budget,
				Clock:    clock,
				Progress: &progress,
				Measure: func(_ context.Context, w schedperf.Workload, p schedperf.Profile, i int) (schedperf.Figures, error) {
					runs = append(runs, fmt.Sprintf("%s %s %d", w.Case, p, i))
					clock.Step(time.Minute)
					if w.Case == "long" {
						clock.Step(9 * time.Minute)
					}
					if w.Case == "broken" && p == schedperf.Lockstep {
						return schedperf.Figures{}, errors.New("broken")
					}
					return schedperf.Figures{PodsPerSecond: float64(i)}, nil
				},
			}
			got, err := rounds.Run(t.Context(), test.workloads)
			if failed := err != nil; failed != test.failed {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(test.runs, runs); diff != "" {
				t.Errorf("runs; want -, got +:\n%s", diff)
			}
			var records []string
			for _, r := range got {
				records = append(records, fmt.Sprintf("%s %s %d", r.Workload, r.Profile, r.Runs))
			}
			if diff := cmp.Diff(test.records, records); diff != "" {
				t.Errorf("records; want -, got +:\n%s", diff)
			}
			if left := len(test.workloads)*4 > len(runs); left && !strings.Contains(progress.String(), "left out") &&
				!strings.Contains(progress.String(), "failed") {
				t.Errorf("nothing says what was left out:\n%s", progress.String())
			}
		})
	}
}

// A user who interrupts the benchmark still gets the measured figures.
func TestRounds_InterruptReturnsMeasuredRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rounds := schedperf.Rounds{
		Count: 3, Budget: time.Hour, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Progress: &bytes.Buffer{},
		Measure: func(context.Context, schedperf.Workload, schedperf.Profile, int) (schedperf.Figures, error) {
			cancel()
			return schedperf.Figures{}, nil
		},
	}
	records, err := rounds.Run(ctx, schedperf.Gangs())
	if len(records) != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", records, err)
	}
}
