package progress_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

func TestShort_AndGroupedNumbers(t *testing.T) {
	for got, want := range map[string]string{
		progress.Short(0): "0", progress.Short(0.34): "0.3", progress.Short(9.96): "10", progress.Short(999.4): "999",
		progress.Short(999.6): "1.0k", progress.Short(1_234_567): "1.2M", progress.Short(38e6): "38M",
		progress.Short(5e12): "5000G",
		progress.Grouped(0):  "0", progress.Grouped(999): "999", progress.Grouped(1000): "1,000",
		progress.Grouped(-1234567):              "-1,234,567",
		progress.Span(59900 * time.Millisecond): "59s", progress.Span(time.Hour - 1): "59m59s",
		progress.Span(time.Hour):                     "1h00m",
		progress.Span(76*time.Hour + 50*time.Minute): "3d04h",
		progress.Millis(0):                           "0.00ms", progress.Millis(time.Microsecond): "<0.01ms",
		progress.Millis(210 * time.Microsecond): "0.21ms", progress.Millis(8100 * time.Microsecond): "8.1ms",
		progress.Millis(120 * time.Millisecond): "120ms",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Runs that are played at once have distinct names, and each of them reports its end.
func TestWatch_SeveralRunsAtOnce(t *testing.T) {
	const runs = 4
	out := &paper{}
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	_, shown := progress.Start(t.Context(), progress.Options{Out: out, Form: progress.Plain, Clock: clk, Runs: runs})
	var all sync.WaitGroup
	for i := range uint64(runs) {
		s := random(t, i, 30)
		run := shown.Watch(fmt.Sprintf("lockstep/%d", i), s)
		all.Go(func() {
			if err := direct.NewEngine(direct.Options{}, clk.Now).Run(t.Context(), s, run); err != nil {
				t.Error(err)
			}
			run.Done()
		})
		clk.Step(6 * time.Second)
	}
	all.Wait()
	if err := shown.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		last := ""
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, fmt.Sprintf("lockstep/%d (%d of %d): t=", i, i+1, runs)) {
				last = line
			}
		}
		if !strings.Contains(last, "jobs 100% (30 of 30)") || !strings.Contains(last, ", over after ") {
			t.Errorf("the last line of run %d is %q", i, last)
		}
	}
}
