package progress_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

// fixture is a scene, an engine's events about it, and the number of those shown.
type fixture struct {
	clock *clocktesting.FakeClock
	scene *scenario.Scenario
	told  []engine.Event
	runs  []*progress.Run
	shown []int
}

// TestGolden shows the screens of runs of small scenes. Commands are
//
//	scene fleet=F           jobs "NAME pods=N gpus=N at=D for=D [priority=N]" and events "fail|drain|return NODE at=D"
//	runs n=N names=a,b      watches the scene N times
//	play [run=I] until=D in=D   reports the events until a virtual instant to a run, in so much wall time
//	over [run=I]            says that a run is over
//	picture width=N height=N, plain, json
//
// Each decision takes a tenth of a millisecond for each member.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		t.Helper()
		s := &fixture{clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.obey(t, d)
		})
	})
}

func (s *fixture) obey(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	run := 0
	maybe(t, d, "run", &run)
	switch d.Cmd {
	case "scene":
		var of string
		d.ScanArgs(t, "fleet", &of)
		s.set(t, of, d.Input)
	case "runs":
		var names string
		n := 1
		maybe(t, d, "n", &n)
		maybe(t, d, "names", &names)
		for i, name := range strings.Split(names, ",") {
			s.runs = append(s.runs, progress.Unwatched(s.clock, name, i+1, n, s.scene))
			s.shown = append(s.shown, 0)
		}
	case "play":
		var until, in string
		d.ScanArgs(t, "until", &until)
		d.ScanArgs(t, "in", &in)
		s.play(t, run, duration(t, until), duration(t, in))
	case "over":
		s.runs[run].Done()
	case "picture":
		var width, height int
		d.ScanArgs(t, "width", &width)
		d.ScanArgs(t, "height", &height)
		return s.picture(t, width, height)
	case "plain", "json":
		write := progress.PlainLine
		if d.Cmd == "json" {
			write = progress.JSONLine
		}
		line, err := write(s.runs[run].Look())
		if err != nil {
			t.Fatal(err)
		}
		return line + "\n"
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return "ok\n"
}

// picture marks the right edge, so that the width is visible.
func (s *fixture) picture(t *testing.T, width, height int) string {
	t.Helper()
	var views []progress.View
	for _, r := range s.runs {
		if v := r.Look(); !v.Over || len(s.runs) == 1 {
			views = append(views, v)
		}
	}
	drawn := strings.Split(progress.Picture(views, width, height, "q quit with a partial report • p pause"), "\n")
	if len(drawn) >= height {
		t.Errorf("%d lines on a terminal of %d", len(drawn), height)
	}
	edge := "+" + strings.Repeat("-", width) + "+\n"
	var b strings.Builder
	b.WriteString(edge)
	for _, line := range drawn {
		n := len([]rune(line))
		if n > width {
			t.Errorf("%d columns on a terminal of %d", n, width)
		}
		b.WriteString("|" + line + strings.Repeat(" ", max(width-n, 0)) + "|\n")
	}
	return b.String() + edge
}

// Happens records an engine's events, and Decides nothing: decisions are made up when the events are replayed.
func (s *fixture) Happens(e engine.Event) {
	e.Nodes = slices.Clone(e.Nodes)
	s.told = append(s.told, e)
}

// Decides is nothing.
func (s *fixture) Decides(engine.Decision) {}

func (s *fixture) play(t *testing.T, run int, until, in time.Duration) {
	t.Helper()
	s.clock.Step(in)
	for s.shown[run] < len(s.told) && s.told[s.shown[run]].At <= until {
		e := s.told[s.shown[run]]
		if e.Kind == engine.Started || e.Kind == engine.Refused {
			members := len(s.scene.Jobs[e.Job].Gang.Members)
			took := time.Duration(members) * 100 * time.Microsecond
			s.runs[run].Decides(engine.Decision{Took: took, Members: members})
		}
		s.runs[run].Happens(e)
		s.shown[run]++
	}
}

func (s *fixture) set(t *testing.T, of, input string) {
	t.Helper()
	f, err := fleet.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	made := trace.Trace{Name: "made-up"}
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		args := make(map[string]string)
		for _, w := range words {
			name, value, _ := strings.Cut(w, "=")
			args[name] = value
		}
		switch words[0] {
		case string(trace.Fail), string(trace.Drain), string(trace.Return):
			made.Events = append(made.Events, trace.Event{
				At: duration(t, args["at"]), Kind: trace.Kind(words[0]), Nodes: words[1:2],
			})
		default:
			made.Jobs = append(made.Jobs, trace.Job{
				ID: words[0], Submit: duration(t, args["at"]), Duration: duration(t, args["for"]),
				Podsets: []trace.Podset{{Count: integer(t, args["pods"]), GPUs: integer(t, args["gpus"])}},
			})
		}
	}
	if s.scene, err = importer.New(f, made, scenario.Options{}); err != nil {
		t.Fatal(err)
	}
	s.told = nil
	if err := direct.NewEngine(direct.Options{}, s.clock.Now).Run(t.Context(), s.scene, s); err != nil {
		t.Fatal(err)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func integer(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// maybe reads an argument if there is one.
func maybe(t *testing.T, d *datadriven.TestData, name string, into any) {
	t.Helper()
	if d.HasArg(name) {
		d.ScanArgs(t, name, into)
	}
}
