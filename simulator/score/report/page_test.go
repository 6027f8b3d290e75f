package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/report"
)

func TestLibrary_IsThePublishedOne(t *testing.T) {
	text, err := report.Library()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != report.LibrarySHA256 {
		t.Errorf("the library has the hash %s, not %s", got, report.LibrarySHA256)
	}
	if !bytes.Contains(text, []byte(`version="`+report.LibraryVersion+`"`)) &&
		!bytes.Contains(text, []byte(`"`+report.LibraryVersion+`"`)) {
		t.Errorf("the library does not say that it is %s", report.LibraryVersion)
	}
	if bytes.Contains(text, []byte("</script")) {
		t.Error("the library would end the element that it stands in")
	}
}

func TestWrite_PageNamesItsInputs(t *testing.T) {
	in := example(t)
	in.Card.Partial = "interrupted at 2 h of virtual time"
	in.Card.Violations.PartialGangs = 2
	page, c := written(t, in)
	for _, want := range []string{
		"lockstep on gb200-72, short", "0123456789ab", "fedcba98", "the machine of this test", "74 nodes, 290 GPUs",
		"The workload is synthetic", "Partial result.", "interrupted at 2 h of virtual time", "2 starts broke a rule",
		"then the first by name", "default-src 'none'", "The numbers as a table", "How it is computed", "longest waits",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, not := range []string{`src="`, "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(page, libraryText(t), ""), not) {
			t.Errorf("the page has %q", not)
		}
	}
	if len(c.Series.At) == 0 || len(c.Waits) < 3 || len(c.Quality.Counts) == 0 || len(c.Latency.Below) == 0 ||
		len(c.Map.Starts) == 0 {
		t.Errorf("something has no data: %+v", c)
	}
}

func libraryText(t *testing.T) string {
	t.Helper()
	text, err := report.Library()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWrite_WholeRunHasNoAlarm(t *testing.T) {
	page, _ := written(t, example(t))
	if strings.Contains(page, "Partial") || strings.Contains(page, `class="alarm"`) {
		t.Error("the page of a whole run raises an alarm")
	}
}

func TestWrite_NamesOfUsersAreOnlyText(t *testing.T) {
	const hostile = `</script><script>document.title="taken"</script>`
	in := example(t)
	in.Card.Scheduler, in.Card.Source, in.Card.Notes = hostile, hostile, []string{hostile}
	for i := range in.Outcomes {
		in.Outcomes[i].ID, in.Outcomes[i].Tenant = hostile, hostile
	}
	in.Card.Classes[0].Name = hostile
	page, _ := written(t, in)
	if strings.Contains(page, hostile) {
		t.Error("a name became a part of the page's scripts")
	}
}

func TestWrite_EqualInputsGiveEqualPages(t *testing.T) {
	in := example(t)
	one, _ := written(t, in)
	two, _ := written(t, in)
	if one != two {
		t.Error("the same input gave two different pages")
	}
}

func TestWrite_EmptyRunHasAPage(t *testing.T) {
	page, c := written(t, report.Input{Card: measure.Scorecard{Scheduler: "lockstep", Fleet: "f", Trace: "t"}})
	if !strings.Contains(page, "lockstep on f, t") || len(c.Series.At) > 0 || strings.Contains(page, "<details") {
		t.Error("a run of nothing is not a page without charts")
	}
}

func TestWrite_ReturnsErrors(t *testing.T) {
	in := example(t)
	full := errors.New("disk full")
	if err := report.Write(failing{full}, in); !errors.Is(err, full) {
		t.Errorf("a writer that fails gave %v", err)
	}
	in.Series.Used = in.Series.Used[1:]
	if err := report.Write(&bytes.Buffer{}, in); err == nil || !strings.Contains(err.Error(), "different lengths") {
		t.Errorf("columns of different lengths gave %v", err)
	}
	if err := report.WriteComparison(&bytes.Buffer{}, report.Comparison{Runs: []report.Input{in}}); err == nil {
		t.Error("columns of different lengths were compared")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWrite_OpenWaitsAreNeverServed(t *testing.T) {
	in := report.Input{Card: measure.Scorecard{Classes: []measure.Class{{Name: "one node"}, {Name: "5-16 nodes"}}}}
	for i, wait := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
		in.Outcomes = append(in.Outcomes, measure.Outcome{
			Job: i, Class: "one node", Accelerators: 1, Wait: wait, Start: wait,
			Duration: time.Hour, Waiting: wait == 40*time.Second,
		})
	}
	in.Outcomes = append(in.Outcomes, measure.Outcome{
		Job: 4, Class: "5-16 nodes", Accelerators: 6, Wait: 30 * time.Second, Start: 30 * time.Second,
		Duration: time.Hour,
	})
	_, c := written(t, in)
	want := []struct {
		Name string
		X, Y []float64
	}{
		{"all jobs", []float64{0, 10, 20, 30}, []float64{0.2, 0.4, 0.6, 0.8}},
		{"weighted by GPU-hours", []float64{0, 10, 20, 30}, []float64{0.1, 0.2, 0.3, 0.9}}, // 1 + 1 + 1 + 6 of 10 hours
		{"one node", []float64{0, 10, 20}, []float64{0.25, 0.5, 0.75}},
		{"5-16 nodes", []float64{30}, []float64{1}},
	}
	if diff := cmp.Diff(want, c.Waits); diff != "" {
		t.Error(diff)
	}
}

func TestWrite_QualityByClass(t *testing.T) {
	in := report.Input{Card: measure.Scorecard{Classes: []measure.Class{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}
	for _, o := range []measure.Outcome{
		{Class: "b", Q: 1, Members: 1}, {Class: "a", Q: 1}, {Class: "a", Q: 0.9999}, {Class: "a", Q: 0.75}, {Class: "a"}, {Class: "c", Q: 0.1}, {Class: "c", Q: 0.5},
	} {
		if o.Members == 0 {
			o.Members = 2
		}
		in.Outcomes = append(in.Outcomes, o)
	}
	_, c := written(t, in)
	if diff := cmp.Diff([]string{"a", "c"}, c.Quality.Classes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]int{{1, 1, 1, 0, 0}, {0, 0, 0, 1, 1}}, c.Quality.Counts); diff != "" {
		t.Error(diff)
	}
}

func TestWriteComparison_PairsSchedulers(t *testing.T) {
	s := short(t)
	runs := []report.Input{
		input(t, s, direct.Options{}, "lockstep"),
		input(t, s, direct.Options{Discipline: direct.Strict}, "strict"),
	}
	table, err := compare.Runs([]measure.Scorecard{runs[0].Card, runs[1].Card})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.WriteComparison(&out, report.Comparison{Table: table, Runs: runs}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"lockstep, strict on gb200-72", "paired by seed", "worse once", "Who pays, and who gains", "mean wait",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	parts := []string{
		`id="verdict"`,
		table.InWords()[0],
		"The figures that decide",
		"lockstep against strict",
		"<details><summary><h2>All ",
	}
	last := -1
	for _, part := range parts {
		at := strings.Index(out.String(), part)
		if at <= last {
			t.Errorf("%q is not on the page, or not in its place", part)
		}
		last = at
	}
	table.Watermark = "other seeds"
	out.Reset()
	err = report.WriteComparison(&out, report.Comparison{Table: table})
	if err != nil || !strings.Contains(out.String(), "Not comparable.") ||
		strings.Contains(out.String(), `id="verdict"`) {
		t.Errorf("without a watermark or with a verdict, or %v", err)
	}
}
