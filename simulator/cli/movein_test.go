package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

var rewrite = flag.Bool("rewrite-page", false, "write the outputs of commands over those of the page")

// TestMovingInPage runs the commands of docs/moving-in.md on its manifests: their outputs are those of the page.
func TestMovingInPage(t *testing.T) {
	moving := page.Page{
		File: "docs/moving-in.md", Write: *rewrite, Mend: "go test ./simulator/cli -run TestMovingInPage -rewrite-page",
	}
	const most = 80
	if lines := moving.Lines(t); lines > most {
		t.Errorf("the page has %d lines, want at most %d", lines, most)
	}
	moving.Play(t, func(words []string) (out, notes string) {
		_, out, notes = execute(t, words...)
		return out, notes
	})
}

// Both kinds of migration meet in one object: a PyTorchJob of KAI becomes a TrainJob of Lockstep's, and its notes are
// in the order of its lines.
func TestMigrate_ReadsOtherSchedulers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	job := write("job.yaml", strings.Replace(oldJob, "metadata: {name: mnist}",
		"metadata: {name: mnist, labels: {kai.scheduler/queue: a}}", 1)+
		"---\napiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: pi}\nspec: {mpiReplicaSpecs: {Launcher: {replicas: 1, "+
		"template: {spec: {schedulerName: volcano, containers: [{name: a, image: a}]}}}}}\n")
	code, out, notes := execute(t, "migrate", "--keep-mpijobs", job)
	for _, want := range []string{"kind: TrainJob", "kueue.x-k8s.io/queue-name: a", "kind: MPIJob", "schedulerName: lockstep-scheduler"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not printed:\n%s", code, want, out)
		}
	}
	queue, restart := strings.Index(notes, "job.yaml:3: metadata.labels.kai.scheduler/queue: changed: "),
		strings.Index(notes, "job.yaml:8: spec.pytorchReplicaSpecs.Worker.restartPolicy: ")
	if queue < 0 || restart < queue || strings.Contains(notes, "values of the chart") {
		t.Errorf("the notes are:\n%s", notes)
	}
	if _, out, _ := execute(
		t,
		"migrate",
		job,
	); strings.Contains(out, "MPIJob") ||
		strings.Count(out, "kind: TrainJob\n") != 2 {
		t.Errorf("without --keep-mpijobs:\n%s", out)
	}
	for _, test := range []struct {
		name string
		args []string
		want []string // in the one line
	}{
		{"no level", []string{"migrate", "--tier", "2=", job}, []string{"--tier 2=: ", "--tier 2=rack"}},
		{"no tier", []string{"migrate", "--tier", "rack", job}, []string{"--tier", "--help"}},
		{
			"another kind of Volcano",
			[]string{"migrate", job, write("flow.yaml", "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\n")},
			[]string{"flow.yaml:2: ", "CronJob", "take it out"},
		},
		{
			"a wrong type in a List",
			[]string{"migrate", job, write("list.yaml", "kind: List\napiVersion: v1\nitems:\n- apiVersion: batch.volcano.sh/v1alpha1\n"+
				"  kind: Job\n  metadata: {name: a}\n  spec:\n    tasks:\n    - replicas: many\n")},
			[]string{"list.yaml:9: ", "spec.tasks[0].replicas", `"many"`, "write a whole number"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, stderr := execute(t, test.args...)
			line, rest, _ := strings.Cut(stderr, "\n")
			if code != 2 || out != "" || rest != "" {
				t.Errorf("exit %d, stdout %q, want exit 2, nothing, and one line:\n%s", code, out, stderr)
			}
			for _, part := range test.want {
				if !strings.Contains(line, part) {
					t.Errorf("%q is not in: %s", part, line)
				}
			}
		})
	}
}
