package cases_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/controller/plan/cases"
)

const (
	first = `The first case is whole.
-- trainjob.yaml --
kind: TrainJob
spec:
  numNodes: 1
-- runtime.yaml --
kind: Runtime
-- upstream.yaml --
kind: JobSet
spec:
  a: 1
  b: 1
-- want.yaml from upstream.yaml --
@@ JobSet.spec @@
   b: 1
+  c: 1
`
	second = `The second case says what it changes.
-- trainjob.yaml from first --
@@ TrainJob.spec @@
-  numNodes: 1
+  numNodes: 2
-- runtime.yaml from first --
-- upstream.yaml from first --
@@ JobSet.spec @@
-  a: 1
+  a: 2
-- want.yaml from upstream.yaml --
@@ JobSet.spec @@
   b: 1
+  c: 1
`
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, dir string) *cases.Set {
	t.Helper()
	set, err := cases.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = string(text)
	}
	return out
}

// Callers see every part whole, by way of another case and of a part of the same one.
func TestLoad_AppliesDifferences(t *testing.T) {
	dir := folder(t, map[string]string{"first.txtar": first, "second.txtar": second})
	alone, err := cases.Read(dir, "second")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*cases.Case{load(t, dir).Get("second"), alone} {
		got := map[string]string{"shows": c.Shows}
		for _, name := range c.Parts("") {
			got[name], _ = c.Text(name)
		}
		want := map[string]string{
			"shows":        "The second case says what it changes.",
			cases.TrainJob: "kind: TrainJob\nspec:\n  numNodes: 2\n",
			cases.Runtime:  "kind: Runtime\n",
			cases.Upstream: "kind: JobSet\nspec:\n  a: 2\n  b: 1\n",
			cases.Want:     "kind: JobSet\nspec:\n  a: 2\n  b: 1\n  c: 1\n",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A rewrite of unchanged cases writes nothing: the planner's own cases have the form that Save writes.
func TestSave_LeavesThePlannersCases(t *testing.T) {
	before := contents(t, "../testdata")
	dir := folder(t, before)
	if err := load(t, dir).Save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("run go test ./controller/plan -run TestGolden -args -rewrite (-is +would be):\n%s", diff)
	}
}

// The base of a part can change: the whole text of the part stays the same.
func TestSave_KeepsWholeTexts(t *testing.T) {
	dir := folder(t, map[string]string{"first.txtar": first, "second.txtar": second})
	set := load(t, dir)
	set.Get("first").Set(cases.Upstream, "kind: JobSet\nspec:\n  a: 2\n  b: 2\n")
	if err := set.Save(); err != nil {
		t.Fatal(err)
	}
	again := load(t, dir).Get("second")
	if text, _ := again.Text(cases.Want); text != "kind: JobSet\nspec:\n  a: 2\n  b: 1\n  c: 1\n" {
		t.Errorf("want.yaml became %q", text)
	}
	if text := contents(t, dir)["second.txtar"]; !strings.Contains(
		text,
		"-- upstream.yaml from first --\n@@ JobSet.spec @@\n-  b: 2\n+  b: 1\n",
	) {
		t.Errorf("the file is\n%s", text)
	}
}

// The author of a case writes whole parts; Save turns them into differences, from bases that other cases have already.
func TestSave_FoldsNewCases(t *testing.T) {
	third := "The third case is new.\n-- trainjob.yaml --\nkind: TrainJob\nspec:\n  numNodes: 1\n-- runtime.yaml --\nkind: Other\n"
	dir := folder(t, map[string]string{"first.txtar": first, "second.txtar": second, "third.txtar": third})
	set := load(t, dir)
	set.Get("third").Set(cases.Upstream, "kind: JobSet\nspec:\n  a: 1\n  b: 1\n")
	set.Get("third").Set(cases.Want, "kind: JobSet\nspec:\n  a: 1\n  b: 1\n")
	if err := set.Save(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"first.txtar": first, "second.txtar": second,
		"third.txtar": "The third case is new.\n-- trainjob.yaml from first --\n-- runtime.yaml --\nkind: Other\n" +
			"-- upstream.yaml from first --\n-- want.yaml from upstream.yaml --\n",
	}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where upstream now refuses a job that it rendered before, a difference from its rendering becomes a whole part.
func TestSave_BaseIsGone(t *testing.T) {
	dir := folder(t, map[string]string{"first.txtar": first})
	set := load(t, dir)
	set.Get("first").Remove(cases.Upstream)
	set.Get("first").Set(cases.UpstreamError, "refused\n")
	if err := set.Save(); err != nil {
		t.Fatal(err)
	}
	if text := contents(t, dir)["first.txtar"]; !strings.HasSuffix(
		text,
		"-- want.yaml --\nkind: JobSet\nspec:\n  a: 1\n  b: 1\n  c: 1\n",
	) {
		t.Errorf("the file is\n%s", text)
	}
}

// After an edit that makes differences unfit, the commands that write answers still work, in any order, and the parts
// that they do not write stay.
func TestOpen_MendsWhatDoesNotFit(t *testing.T) {
	edited := strings.Replace(second, "-  a: 1\n", "-  a: 5\n", 1)
	dir := folder(t, map[string]string{"first.txtar": first, "second.txtar": edited})
	open := func() *cases.Set {
		set, err := cases.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	set := open()
	if n := len(set.Misfits()); n != 2 {
		t.Errorf("%d misfits, want upstream.yaml and want.yaml", n)
	}
	set.Get("second").Set(cases.Want, "kind: JobSet\nspec:\n  a: 2\n  b: 1\n  c: 1\n")
	if err := set.Save(); err != nil {
		t.Fatal(err)
	}
	if text := contents(t, dir)["second.txtar"]; !strings.Contains(
		text,
		"-- upstream.yaml from first --\n@@ JobSet.spec @@\n-  a: 5\n+  a: 2\n-- want.yaml --\n",
	) {
		t.Errorf("the file is\n%s", text)
	}
	set = open()
	set.Get("second").Set(cases.Upstream, "kind: JobSet\nspec:\n  a: 2\n  b: 1\n")
	if err := set.Save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"first.txtar": first, "second.txtar": second}, contents(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSave_RefusesWhatItCouldNotRead(t *testing.T) {
	for name, text := range map[string]string{"a header": "-- want.yaml --\n", "no last line": "a"} {
		dir := folder(t, map[string]string{"first.txtar": first})
		set := load(t, dir)
		set.Get("first").Set(cases.Options, text)
		if err := set.Save(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if diff := cmp.Diff(map[string]string{"first.txtar": first}, contents(t, dir)); diff != "" {
			t.Errorf("%s: the file changed:\n%s", name, diff)
		}
	}
}

// Answers unpacked into folders of whole files and taken back are unchanged.
func TestTakeAnswers(t *testing.T) {
	dir := folder(t, map[string]string{"first.txtar": first, "second.txtar": second})
	set, out := load(t, dir), t.TempDir()
	if err := set.Unpack(out); err != nil {
		t.Fatal(err)
	}
	if text := contents(t, filepath.Join(out, "second"))[cases.Want]; text != "kind: JobSet\nspec:\n  a: 2\n  b: 1\n  c: 1\n" {
		t.Errorf("unpacked want.yaml is %q", text)
	}
	if err := set.TakeAnswers(out); err != nil {
		t.Fatal(err)
	}
	if err := set.Save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"first.txtar": first, "second.txtar": second}, contents(t, dir)); diff != "" {
		t.Errorf("unpacked and taken back (-before +after):\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(out, "second")); err != nil {
		t.Fatal(err)
	}
	if err := set.TakeAnswers(out); err == nil || !strings.Contains(err.Error(), "second/upstream*") {
		t.Errorf("error %v, want one that names the case without an answer", err)
	}
}

func TestLoad_Refusals(t *testing.T) {
	const whole = "Shows something.\n-- want.yaml --\na: 1\n"
	for name, c := range map[string]struct{ text, want string }{
		"no comment":    {"-- want.yaml --\na: 1\n", "x.txtar: no comment: the first line says what the case shows"},
		"unknown part":  {"Shows it.\n-- wnat.yaml --\n", `x.txtar: part "wnat.yaml": want trainjob.yaml, runtime.yaml`},
		"twice":         {whole + "-- want.yaml --\n", "x.txtar: part want.yaml is there twice"},
		"no such case":  {"Shows it.\n-- want.yaml from nowhere --\n", `x.txtar: part want.yaml: base "nowhere": reading a case: open`},
		"no such part":  {"Shows it.\n-- options.yaml from first --\n", `x.txtar: part options.yaml: base "first": it has no such part`},
		"its own base":  {"Shows it.\n-- want.yaml from x --\n", `x.txtar: part want.yaml: base "x": it has no such part`},
		"chain":         {"Shows it.\n-- trainjob.yaml from second --\n", `part trainjob.yaml: base "second" is a difference itself: take first`},
		"does not fit":  {"Shows it.\n-- runtime.yaml from first --\n@@ a @@\n-b\n", "x.txtar: part runtime.yaml: it does not fit first: hunk @@ a @@: behind line 0"},
		"mend an input": {"Shows it.\n-- runtime.yaml from first --\n-b\n", "; write the part whole"},
		"mend ours":     {"Shows it.\n-- want.yaml from first --\n-b\n", "; run the test with -args -rewrite"},
		"mend theirs":   {"Shows it.\n-- upstream.yaml from first --\n-b\n", "; run make generate-conformance"},
		"its base":      {"Shows it.\n-- upstream.yaml from first --\n-b\n-- want.yaml from upstream.yaml --\n", "it does not fit upstream.yaml: its own difference does not fit"},
		"no difference": {"Shows it.\n-- upstream.yaml from upstream.yaml --\n", `base "upstream.yaml": reading a case: open`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"first.txtar": first, "second.txtar": second, "x.txtar": c.text})
			if _, err := cases.Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := cases.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no cases: there is no file") {
		t.Errorf("error %v for an empty folder", err)
	}
}
