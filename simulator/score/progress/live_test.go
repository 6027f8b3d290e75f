package progress_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

// paper is an output that may be read while it is written. Nothing can be written while it is held.
type paper struct {
	held    sync.Mutex
	lock    sync.Mutex
	written bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.held.Lock()
	defer p.held.Unlock()
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.written.Write(b)
}

func (p *paper) String() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.written.String()
}

// eventually waits for another goroutine.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited without result until", what)
		}
	}
}

// single is a scene of one job.
func single(tb testing.TB) *scenario.Scenario {
	tb.Helper()
	f, err := fleet.Open("gb200-72")
	if err != nil {
		tb.Fatal(err)
	}
	s, err := importer.New(f, trace.Trace{Name: "one", Jobs: []trace.Job{
		{ID: "j", Duration: time.Hour, Podsets: []trace.Podset{{Count: 2, GPUs: 4}}},
	}}, scenario.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Events of the scene's job that may be reported again and again.
func submitted(at time.Duration) engine.Event {
	return engine.Event{At: at, Kind: engine.Submitted, Running: engine.None}
}

func refused(at time.Duration) engine.Event {
	return engine.Event{At: at, Kind: engine.Refused, Running: engine.None}
}

func begin(t *testing.T, form progress.Form, in io.Reader, out io.Writer) (
	context.Context, *progress.Progress, *clocktesting.FakeClock,
) {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	ctx, shown := progress.Start(t.Context(), progress.Options{
		Out: out, In: in, Form: form, Clock: clk, Runs: 1, Environment: []string{"TERM=xterm-256color"},
	})
	return ctx, shown, clk
}

// A writer that is no terminal gets lines, five seconds apart, and nothing that only a terminal understands.
func TestPlain_LinesFiveSecondsApart(t *testing.T) {
	out := &paper{}
	if form := progress.Fitting(out, "xterm"); form != progress.Plain {
		t.Fatalf("an output that is no terminal gets %s", form)
	}
	_, shown, clk := begin(t, progress.Plain, nil, out)
	run := shown.Watch("lockstep/1", single(t))
	for lines := 1; lines <= 3; lines++ {
		clk.Step(4900 * time.Millisecond)
		run.Happens(submitted(time.Duration(lines) * time.Hour))
		clk.Step(100 * time.Millisecond)
		eventually(t, "there is another line", func() bool {
			if strings.Count(out.String(), "\n") == lines {
				return true
			}
			clk.Step(time.Millisecond) // a tick is lost if the one before has not been taken yet
			return false
		})
	}
	run.Done()
	if err := shown.Close(); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Count(text, "\n") != 4 || !strings.Contains(text, "lockstep/1: t=3h00m jobs 0% (0 of 1)") ||
		!strings.HasSuffix(text, "over after 15s\n") || strings.ContainsAny(text, "\x1b\r\b") {
		t.Errorf("%q", text)
	}
}

// A terminal that takes no bytes holds up no events.
func TestWatch_SlowTerminalHoldsUpNoEvent(t *testing.T) {
	for _, form := range []progress.Form{progress.Screen, progress.Plain, progress.JSON} {
		t.Run(string(form), func(t *testing.T) {
			out := &paper{}
			out.held.Lock()
			_, shown, clk := begin(t, form, nil, out)
			run := shown.Watch("", single(t))
			told := make(chan struct{})
			go func() {
				defer close(told)
				for i := range 10_000 {
					clk.Step(100 * time.Millisecond)
					run.Happens(submitted(time.Duration(i) * time.Second))
				}
				run.Done()
			}()
			select {
			case <-told:
			case <-time.After(20 * time.Second):
				t.Error("the engine waits for the terminal")
			}
			if text := out.String(); text != "" {
				t.Errorf("written: %q", text)
			}
			out.held.Unlock()
			if err := shown.Close(); err != nil {
				t.Error(err)
			}
			if out.String() == "" {
				t.Error("nothing was written at the end")
			}
		})
	}
}

// A reader who presses q ends the run's context, and sees its progress so far.
func TestScreen_QuitEndsTheRun(t *testing.T) {
	for _, pressed := range []string{"q", "\x03"} {
		in, keys := io.Pipe()
		out := &paper{}
		ctx, shown, _ := begin(t, progress.Screen, in, out)
		run := shown.Watch("", single(t))
		run.Happens(submitted(0))
		go func() { _, _ = keys.Write([]byte(pressed)) }()
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Fatal("the context goes on")
		}
		if cause := context.Cause(ctx); !errors.Is(cause, progress.ErrQuit) {
			t.Errorf("the cause is %v", cause)
		}
		run.Done()
		keys.Close()
		if err := shown.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A reader who presses p lets the engine wait, and q ends that too. The pause does not count as time of the run.
func TestScreen_PauseHoldsTheEngine(t *testing.T) {
	in, keys := io.Pipe()
	defer keys.Close()
	ctx, shown, clk := begin(t, progress.Screen, in, &paper{})
	run := shown.Watch("", single(t))
	run.Happens(submitted(0))
	var told sync.WaitGroup
	for _, press := range []string{"p", "q"} {
		if _, err := keys.Write([]byte("p")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the run is to pause", shown.Paused)
		happened, before := make(chan struct{}), run.Latest()
		told.Go(func() {
			run.Happens(refused(time.Second))
			close(happened)
		})
		eventually(t, "the run pauses", func() bool { return run.Latest() != before })
		clk.Step(time.Hour)
		select {
		case <-happened:
			t.Fatal("an event happened during a pause")
		default:
		}
		if _, err := keys.Write([]byte(press)); err != nil {
			t.Fatal(err)
		}
		told.Wait()
	}
	if ctx.Err() == nil {
		t.Error("the context goes on")
	}
	run.Done()
	if wall := run.Look().Wall; wall != 0 {
		t.Errorf("the run took %s, beside its pauses", wall)
	}
	if err := shown.Close(); err != nil {
		t.Error(err)
	}
}

// full is an output that nothing can be written to.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A writer that fails is reported at the end, and hinders nothing before.
func TestClose_ReportsWriterThatFailed(t *testing.T) {
	for _, form := range []progress.Form{progress.Plain, progress.JSON} {
		_, shown, _ := begin(t, form, nil, full{})
		run := shown.Watch("", single(t))
		run.Happens(submitted(0))
		run.Done()
		if err := shown.Close(); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", form, err)
		}
		if err := shown.Close(); !errors.Is(err, errFull) {
			t.Errorf("%s, closed again: %v", form, err)
		}
	}
}

// The form None writes nothing.
func TestNone_WritesNothing(t *testing.T) {
	out := &paper{}
	_, shown, clk := begin(t, progress.None, nil, out)
	run := shown.Watch("", single(t))
	clk.Step(time.Minute)
	run.Happens(submitted(0))
	run.Decides(engine.Decision{})
	run.Done()
	if err := shown.Close(); err != nil || out.String() != "" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestParseForm(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for asked, want := range map[string]progress.Form{
		"": progress.Plain, "auto": progress.Plain,
		"screen": progress.Screen, "json": progress.JSON, "none": progress.None,
	} {
		if got, err := progress.ParseForm(asked, file, "xterm"); err != nil || got != want {
			t.Errorf("%q: %q, %v", asked, got, err)
		}
	}
	_, err = progress.ParseForm("fancy", file, "xterm")
	want := `--progress: progress cannot be shown as "fancy"; name one of auto, screen, plain, json, none`
	if !badinput.Is(err) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
