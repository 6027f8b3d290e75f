package results_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

func TestOpen_ReadsBackWhatWasWritten(t *testing.T) {
	s, eventLog := played(t)
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%t", plain), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "result")
			whole := card()
			whole.Gangs.Submitted = 40
			if err := write(dir, s, eventLog, results.Options{Plain: plain}, whole); err != nil {
				t.Fatal(err)
			}
			r, err := results.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, r.Card); diff != "" {
				t.Error(diff)
			}
			events, err := read(t, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(eventLog, events); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(results.Outlined(s), r.Scene); diff != "" {
				t.Error(diff)
			}
			if html, err := os.ReadFile(filepath.Join(dir, results.ReportFile)); err != nil || len(html) == 0 {
				t.Errorf("report: %q, %v", html, err)
			}
		})
	}
}

func TestOutlined_NamesWhatEventsNumber(t *testing.T) {
	s, _ := played(t)
	o := results.Outlined(s)
	if len(o.Nodes) != 74 || len(o.Jobs) != 40 || o.Load != 1 || o.Seed != 7 || !o.Synthetic {
		t.Errorf("%d nodes, %d jobs, load %g, seed %d, synthetic %t",
			len(o.Nodes), len(o.Jobs), o.Load, o.Seed, o.Synthetic)
	}
	for i, node := range o.Nodes {
		if s.Ledger.Tree.Node(i) != node.Name || len(node.Domains) != len(o.Levels) {
			t.Errorf("node %d: %+v", i, node)
		}
	}
	if j := o.Jobs[2]; j.ID != "job-02" || j.Members != 3 || j.Accelerators != 12 || j.Submit != 120 ||
		j.Duration != 3600 {
		t.Errorf("job 2: %+v", j)
	}
}

func TestCreate_EqualRunsGiveEqualBytes(t *testing.T) {
	s, eventLog := played(t)
	var seen [2]map[string][]byte
	for i := range seen {
		disk := newMemory(1 << 30)
		if err := write("out", s, eventLog, results.Options{Disk: disk}, card()); err != nil {
			t.Fatal(err)
		}
		seen[i] = disk.files
	}
	if !maps.EqualFunc(seen[0], seen[1], slices.Equal) {
		t.Error("the same run twice wrote other bytes")
	}
	if mtime := seen[0]["out/events.jsonl.gz"][4:8]; !slices.Equal(mtime, []byte{0, 0, 0, 0}) {
		t.Errorf("the header of the log has a time: %v", mtime)
	}
}

func TestEvents_LinesAreShort(t *testing.T) {
	s, eventLog := played(t)
	disk := newMemory(1 << 30)
	if err := write("out", s, eventLog[:8], results.Options{Disk: disk, Plain: true}, card()); err != nil {
		t.Fatal(err)
	}
	want := `{"t":0,"kind":"submitted","job":0}
{"t":0,"kind":"refused","job":0}
{"t":0,"kind":"kept","job":0,"nodes":[0,1],"from":3600}
{"t":0.000000001,"kind":"kept","job":0,"nodes":[0],"from":null}
{"t":1.5,"kind":"started","job":0,"nodes":[0]}
{"t":2,"kind":"nodes-failed","nodes":[0]}
{"t":2,"kind":"disrupted","job":0}
{"t":3,"kind":"nodes-returned","nodes":[0]}
`
	if diff := cmp.Diff(want, string(disk.files["out/events.jsonl"])); diff != "" {
		t.Error(diff)
	}
}

// TestEvents_SurviveARoundTrip is about instants above all: they have to be restored to the nanosecond.
func TestEvents_SurviveARoundTrip(t *testing.T) {
	s, _ := played(t)
	rapid.Check(t, func(t *rapid.T) {
		var eventLog []engine.Event
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			e := engine.Event{
				At:   time.Duration(rapid.Int64Range(0, int64(scenario.Forever)-1).Draw(t, "at")),
				Kind: rapid.SampledFrom([]engine.Kind{engine.Started, engine.Leased, engine.Ended}).Draw(t, "kind"),
				Job:  rapid.IntRange(-1, 39).Draw(t, "job"), Running: engine.None,
			}
			if e.Kind == engine.Leased {
				e.From = time.Duration(rapid.Int64Range(0, int64(scenario.Forever)).Draw(t, "from"))
			}
			if nodes := rapid.SliceOf(rapid.IntRange(0, 73)).Draw(t, "nodes"); len(nodes) > 0 {
				e.Nodes = nodes
			}
			eventLog = append(eventLog, e)
		}
		disk := newMemory(1 << 30)
		if err := write("out", s, eventLog, results.Options{Disk: disk}, card()); err != nil {
			t.Fatal(err)
		}
		r, err := results.OpenOn(disk, "out")
		if err != nil {
			t.Fatal(err)
		}
		var events []engine.Event
		for e, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		if diff := cmp.Diff(eventLog, events); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestCreate_ReplacesEarlierResult(t *testing.T) {
	s, eventLog := played(t)
	dir := t.TempDir()
	if err := write(dir, s, eventLog, results.Options{Plain: true}, card()); err != nil {
		t.Fatal(err)
	}
	run, err := results.Create(dir, s, results.Options{Card: card()})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := results.Open(dir); err != nil || r.Card.Partial == "" {
		t.Errorf("begun anew, the result is not partial: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, results.ReportFile)); err == nil {
		t.Error("the earlier report is still there")
	}
	if err := run.Finish(card(), nil); err != nil {
		t.Fatal(err)
	}
	r, err := results.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := read(t, r); err != nil || len(events) != 0 {
		t.Errorf("%d events of the earlier run are there, %v", len(events), err)
	}
}

func TestCreate_RefusesForeignDirectories(t *testing.T) {
	s, _ := played(t)
	for _, tc := range []struct{ name, file, text, want string }{
		{"somebody's file", "thesis.tex", "x", "thesis.tex"},
		{"somebody's file of a common name", "scorecard.json", `{"score": 3}`, "not those of an earlier result"},
		{"a log without a scorecard", "events.jsonl", "mine", "not those of an earlier result"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tc.file), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := results.Create(dir, s, results.Options{Card: card()})
			if !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v", err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, tc.file)); err != nil || string(text) != tc.text {
				t.Errorf("the file is now %q, %v", text, err)
			}
		})
	}
	t.Run("a file instead of a directory", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := results.Create(name, s, results.Options{Card: card()}); !badinput.Is(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOpen_RefusesWhatIsNoResult(t *testing.T) {
	s, eventLog := played(t)
	written := func(change func(dir string)) string {
		dir := t.TempDir()
		if err := write(dir, s, eventLog, results.Options{Plain: true}, card()); err != nil {
			t.Fatal(err)
		}
		change(dir)
		return dir
	}
	overwrite := func(name, text string) string {
		return written(func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, tc := range []struct{ name, dir, want string }{
		{"nothing there", filepath.Join(t.TempDir(), "nowhere"), "there is no such directory"},
		{"empty", t.TempDir(), "has no scorecard.json"},
		{"no JSON", overwrite("scorecard.json", "{"), "scorecard.json"},
		{"no scheduler", overwrite("scorecard.json", "{}"), "names no scheduler"},
		{"no scene", written(func(dir string) { _ = os.Remove(filepath.Join(dir, "scene.json")) }), "run it again"},
		{"broken scene", overwrite("scene.json", "[]"), "scene.json"},
		{"not a line", overwrite("events.jsonl", "{\"t\":1,\"kind\":\"ended\",\"job\":1}\nnonsense\n"), "events.jsonl:2"},
		{"cut off though it should be whole", overwrite("events.jsonl", `{"t":1,"ki`), "events.jsonl:1"},
		{"a job that is not there", overwrite("events.jsonl", "{\"t\":1,\"kind\":\"ended\",\"job\":40}\n"), "no job 40"},
		{"a node that is not there", overwrite("events.jsonl", "{\"t\":1,\"kind\":\"started\",\"nodes\":[74]}\n"), "no node 74"},
		{"no instant", overwrite("events.jsonl", "{\"kind\":\"ended\"}\n"), "without its instant"},
		{"an instant that is none", overwrite("events.jsonl", "{\"t\":1e99,\"kind\":\"ended\"}\n"), "instant"},
		{"a field of another format", overwrite("events.jsonl", "{\"t\":1,\"kind\":\"ended\",\"pod\":2}\n"), "pod"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := results.Open(tc.dir)
			if err == nil {
				_, err = read(t, r)
			}
			if !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
