package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
)

const oldJob = `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: mnist}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Always
      template: {spec: {containers: [{name: pytorch, image: a, command: [torchrun, train.py]}]}}
`

func TestMigrate_PrintsObjectsAndNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	list := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: team-a}\n---\n"
	if err := os.WriteFile(file, []byte(list+oldJob), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, notes := execute(t, "migrate", file)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, notes)
	}
	var kinds []string
	for document := range strings.SplitSeq(out, "---\n") {
		_, after, _ := strings.Cut(document, "\nkind: ")
		kind, _, _ := strings.Cut(after, "\n")
		kinds = append(kinds, kind)
	}
	if got := strings.Join(kinds, " "); got != "Namespace TrainingRuntime TrainJob" {
		t.Errorf("printed %s", got)
	}
	if want := file + ":15: spec.pytorchReplicaSpecs.Worker.restartPolicy: "; !strings.Contains(notes, want) {
		t.Errorf("no note begins with %s:\n%s", want, notes)
	}
}

func TestMigrate_ReadsStandardInput(t *testing.T) {
	var out, notes bytes.Buffer
	code := cli.Run(t.Context(), []string{"migrate", "-"}, cli.Environment{
		In: strings.NewReader(oldJob), Out: &out, Err: &notes, Clock: clock.RealClock{},
	})
	if code != 0 || !strings.Contains(out.String(), "name: mnist-runtime") {
		t.Errorf("exit %d: %s\n%s", code, out.String(), notes.String())
	}
}

// A file that cannot be migrated prevents all output of the run: a part of it would be applied as if it were all.
func TestMigrate_RefusesInOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", oldJob)
	for _, test := range []struct {
		name string
		args []string
		want []string // in this order, in the one line
	}{
		{"no file", []string{"migrate"}, []string{"migrate: ", "--help"}},
		{"no such file", []string{"migrate", good, filepath.Join(dir, "none.yaml")}, []string{"none.yaml: ", "no such file"}},
		{"no standard input", []string{"migrate", "-"}, []string{"-: ", "name a file"}},
		{"torn YAML", []string{"migrate", write("torn.yaml", oldJob+"---\nkind: [")}, []string{"torn.yaml:1", "not YAML"}},
		{
			"another kind",
			[]string{"migrate", good, write("tf.yaml", "# old\napiVersion: kubeflow.org/v1\nkind: TFJob\n")},
			[]string{"tf.yaml:3: ", "TFJob", "PyTorchJob"},
		},
		{
			"a wrong type",
			[]string{"migrate", write("type.yaml", strings.Replace(oldJob, "replicas: 2", "replicas: two", 1))},
			[]string{"type.yaml:7: ", "replicas", "int32"},
		},
		{"the same job twice", []string{"migrate", good, good}, []string{"good.yaml:1: ", "mnist", "good.yaml:1; "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, stderr := execute(t, test.args...)
			line, rest, _ := strings.Cut(stderr, "\n")
			if code != 2 || out != "" || rest != "" || !strings.HasPrefix(line, "lockstep: ") {
				t.Errorf("exit %d, stdout %q, want exit 2, nothing, and one line:\n%s", code, out, stderr)
			}
			at := 0
			for _, part := range test.want {
				found := strings.Index(line[at:], part)
				if found < 0 {
					t.Fatalf("%q is not in, or not in order in: %s", part, line)
				}
				at += found
			}
		})
	}
}
