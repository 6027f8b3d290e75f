package gates_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/run/gates"
)

var rewrite = flag.Bool(
	"rewrite",
	false,
	"write testdata/thresholds.txt anew",
)

// committed are the figures of the last change that was meant to change them. Run with -rewrite after one, and give the
// table in the commit.
const committed = "testdata/thresholds.txt"

// A change of the scheduler is no worse in any comparison than the committed results.
func TestGates(t *testing.T) {
	var figures []gates.Figure
	for _, gate := range gates.All() {
		card, err := gate.Play(t.Context(), clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, gates.FiguresOf(gate.Name, card)...)
	}
	text, err := os.ReadFile(committed)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	before, err := gates.Read(bytes.NewReader(text), committed)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	differences := gates.Compare(before, figures)
	var table strings.Builder
	for _, d := range differences {
		if d.Changed() {
			table.WriteString(d.String() + "\n")
		}
		if d.Fails() && !*rewrite {
			t.Errorf("%s", d)
		}
	}
	t.Logf("differences:\n%s\nin the mean:\n%s", table.String(), gates.Summary(differences))
	if *rewrite {
		var out bytes.Buffer
		if err := gates.Write(&out, figures); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(committed, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The gates hold: a figure that is worse than its tolerance, a missing one and a new one fail; a better one does not.
func TestCompare(t *testing.T) {
	const file = `# a comment
a  goodput.mean       0.9000
a  wait_seconds.mean  100.0
a  wait_seconds.max   1000.0
a  decisions          10000.0
`
	before, err := gates.Read(strings.NewReader(file), "file")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		metric string
		value  float64
		fails  bool
	}{
		"goodput within a third of a point":  {"goodput.mean", 0.8975, false},
		"goodput half a point lower":         {"goodput.mean", 0.895, true},
		"goodput higher":                     {"goodput.mean", 0.95, false},
		"waits ten seconds longer":           {"wait_seconds.mean", 110, false},
		"waits twelve seconds longer":        {"wait_seconds.mean", 112, true},
		"waits shorter":                      {"wait_seconds.mean", 10, false},
		"the longest wait a tenth longer":    {"wait_seconds.max", 1100, false},
		"the longest wait longer than that":  {"wait_seconds.max", 1101, true},
		"evaluations more than a tenth more": {"decisions", 11001, true},
	} {
		figures := append([]gates.Figure(nil), before...)
		for i := range figures {
			if figures[i].Metric == test.metric {
				figures[i].Value = test.value
			}
		}
		failed := false
		for _, d := range gates.Compare(before, figures) {
			failed = failed || d.Fails()
		}
		if failed != test.fails {
			t.Errorf("%s: fails is %t, want %t", name, failed, test.fails)
		}
	}
	for _, d := range gates.Compare(before, before[1:]) {
		if d.Fails() != (d.Metric == "goodput.mean") {
			t.Errorf("%s", d)
		}
	}
	if fresh := gates.Compare(before[1:], before); !fresh[0].Fails() {
		t.Error("a figure that is not committed does not fail")
	}
}

// Two gates, one a tenth worse and one a tenth better: no change in the mean, by ± t(1) times the standard error.
func TestSummary(t *testing.T) {
	before := []gates.Figure{{"a", "wait_seconds.mean", 100}, {"b", "wait_seconds.mean", 200}}
	now := []gates.Figure{{"a", "wait_seconds.mean", 110}, {"b", "wait_seconds.mean", 180}}
	const want = "wait_seconds.mean                               +0.0 % ± 127.1 in 2 gates\n"
	if got := gates.Summary(gates.Compare(before, now)); got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}

func TestRead_BadLine(t *testing.T) {
	for _, text := range []string{"a b", "a b c", "a b 1 2", "a b NaN"} {
		_, err := gates.Read(strings.NewReader("\n"+text), "file.txt")
		var bad *badinput.Error
		if !errors.As(err, &bad) || bad.Where != "file.txt:2" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
