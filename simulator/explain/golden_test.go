package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/scheduler/whatif/whatiftest"
	"github.com/lockstep-project/lockstep/simulator/explain"
)

// TestGolden prints the answers about the scenes in testdata. The drawing is in whatiftest; questions are: why x, with
// x ... (a gang that is not there yet, as waits), queue and drain WORD..., and print text, or JSON with json.
func TestGolden(t *testing.T) { whatiftest.Play(t, "testdata", answer) }

func answer(t *testing.T, objects whatif.Objects, d *datadriven.TestData) string {
	t.Helper()
	now := whatiftest.Now()
	r, err := whatif.New(objects, whatiftest.Profile(), now)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	if d.Cmd == "with" {
		var more whatif.Objects
		waits := *d
		waits.Cmd = "waits"
		if _, err := whatiftest.Draw(&more, &waits); err != nil {
			d.Fatalf(t, "%v", err)
		}
		r = r.With(more.PodGroups[0], more.Pods, more.Devices)
	}
	forecast, err := explain.NewForecast(t.Context(), r)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	a := explain.Answer{At: now}
	var words []string
	asJSON := false
	for _, arg := range d.CmdArgs {
		if arg.Key == "json" {
			asJSON = true
		} else {
			words = append(words, arg.String())
		}
	}
	switch d.Cmd {
	case "why", "with":
		var v whatif.Verdict
		v, err = r.Why(t.Context(), types.NamespacedName{Namespace: "default", Name: words[0]})
		a.Gangs = []explain.Gang{explain.About(v, forecast, now)}
	case "queue":
		var verdicts []whatif.Verdict
		verdicts, err = r.Queue(t.Context())
		a.Queue = explain.AboutQueue(verdicts, forecast, now)
	case "drain":
		var out whatif.Displaced
		out, err = r.Drain(t.Context(), words)
		a.Drain = explain.AboutDrain(out, now)
	default:
		err = errors.New("unknown command")
	}
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var out bytes.Buffer
	if err := explain.WriteText(&out, a); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if asJSON {
		out.Reset()
		text, err := json.MarshalIndent(a, "", " ")
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		out.Write(text)
		out.WriteString("\n")
	}
	if a.Starts() {
		out.WriteString("exit 0\n")
	} else {
		out.WriteString("exit 1\n")
	}
	return strings.ReplaceAll(out.String(), "\n\n", "\n")
}
