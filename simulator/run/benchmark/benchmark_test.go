package benchmark_test

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/run/benchmark"
)

// One comparison of the benchmark, played and written: the document names its fleet, its schedulers and the results.
func TestPlay_DocumentNamesItsComparisons(t *testing.T) {
	var said []string
	document, err := benchmark.Play(t.Context(), benchmark.Options{
		Dir: t.TempDir(), Only: "knavigator-53", Quick: true, Committed: "../../inputs/trace/testdata/openb",
		Wall: clock.RealClock{}, Say: func(line string) { said = append(said, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := document.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"## knavigator-53", "Fleet knavigator-32: 32 nodes, 256 accelerators", "53 jobs", "seeds 1", "quick run",
		"| lockstep | 100 | 2.65 |",
		"| native-tas |", "| kueue-bestfit |", "| slurm-tree |", "| optimum |", "Apache-2.0", "no deadlines but those of the trace",
		"lockstep compare --fleet knavigator-32 --trace knavigator-53 --load 1 --quick --schedulers lockstep,native-tas,",
		"| bound | ",
	} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is not in the document:\n%s", part, text.String())
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "knavigator-53: 12 runs") {
		t.Errorf("said was %q", said)
	}
}
