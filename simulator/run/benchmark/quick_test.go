package benchmark_test

import (
	"fmt"
	"io"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/run/benchmark"
)

// Each comparison of the benchmark can be played and written: here with its most contended jobs, and one seed.
func TestPlay_EveryComparison(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays for minutes")
	}
	const parts = 4
	for part := 1; part <= parts; part++ {
		t.Run(fmt.Sprint(part, " of ", parts), func(t *testing.T) {
			t.Parallel()
			document, err := benchmark.Play(t.Context(), benchmark.Options{
				Dir: t.TempDir(), Quick: true, Part: part, Parts: parts, Committed: "../../inputs/trace/testdata/openb",
				Wall: clock.RealClock{}, Say: func(line string) { t.Log(line) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := document.Write(io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
}
