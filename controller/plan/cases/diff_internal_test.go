package cases

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const jobSet = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
  - name: node
    template:
      spec:
        completions: 2
        template:
          spec:
            containers:
            - env:
              - name: FIRST
                value: "1"
              - name: SECOND
                value: "1"
              name: node
  suspend: false
`

// A hunk begins with the object and the field that it changes, and has no line numbers.
func TestDiff_NamesThePlace(t *testing.T) {
	changed := strings.Replace(jobSet, `SECOND
                value: "1"`, `SECOND
                value: "2"
              - name: THIRD
                value: "3"`, 1)
	changed = strings.Replace(
		changed,
		"        completions: 2\n",
		"        completions: 2\n        parallelism: 2\n",
		1,
	)
	want := `@@ JobSet.spec.replicatedJobs[node].template.spec @@
         completions: 2
+        parallelism: 2
@@ JobSet.spec.replicatedJobs[node].template.spec.template.spec.containers[node].env @@
               - name: SECOND
-                value: "1"
+                value: "2"
+              - name: THIRD
+                value: "3"
`
	if diff := cmp.Diff(want, diff(jobSet, changed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Lines of a script look like fields, and are none.
func TestDiff_NamesTheKeyOfAText(t *testing.T) {
	const script = "kind: ConfigMap\ndata:\n  run.sh: |\n    set -e\n    case x in\n      a: b\n    esac\n    wait\n    exit\n  other: x\n"
	want := "@@ ConfigMap.data.run.sh @@\n-      a: b\n+      a: c\n@@ ConfigMap.data @@\n-  other: x\n+  other: y\n"
	got := diff(script, strings.NewReplacer("a: b", "a: c", "other: x", "other: y").Replace(script))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An item that is added between items that begin alike is shown from its first line on.
func TestDiff_ShowsWholeItems(t *testing.T) {
	const two = "- a: 1\n  b: 1\n- a: 1\n  b: 3\n"
	want := "@@ [] @@\n   b: 1\n+- a: 1\n+  b: 2\n"
	if diff := cmp.Diff(want, diff(two, "- a: 1\n  b: 1\n- a: 1\n  b: 2\n- a: 1\n  b: 3\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The difference between any two texts turns one into the other, also where lines repeat and only context distinguishes
// them.
func TestDiff_AppliesToAnyTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 5))
	text := func() string {
		var out strings.Builder
		for range random.IntN(12) {
			out.WriteString(
				[]string{"a: 1\n", "- b: 1\n", "  c: 2\n", "---\n", "- name: x\n", "@@\n", "\n"}[random.IntN(7)],
			)
		}
		return out.String()
	}
	for range 20_000 {
		from, to := text(), text()
		difference := diff(from, to)
		got, err := apply(from, difference)
		if err != nil || got != to {
			t.Fatalf("from %q to %q by %q: got %q (%v)", from, to, difference, got, err)
		}
		if (from == to) != (difference == "") {
			t.Fatalf("from %q to %q: difference %q", from, to, difference)
		}
	}
}

func TestApply_Refusals(t *testing.T) {
	for name, c := range map[string]struct{ difference, want string }{
		"no hunk":     {"+a\n", `line "+a": a hunk begins with @@`},
		"no mark":     {"@@ x @@\na\n", `hunk @@ x @@: line "a" begins with none of space, - and +`},
		"empty line":  {"@@ x @@\n\n", `hunk @@ x @@: line "" begins with none of space, - and +`},
		"other base":  {"@@ x @@\n-c\n", `hunk @@ x @@: behind line 0 the base has no lines "c\n"`},
		"wrong order": {"@@ x @@\n-b\n@@ y @@\n-a\n", `hunk @@ y @@: behind line 2 the base has no lines "a\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := apply("a\nb\n", c.difference); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
