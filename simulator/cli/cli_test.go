package cli_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
)

func execute(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), args, cli.Environment{Out: &stdout, Err: &stderr, Clock: clock.RealClock{}})
	return code, stdout.String(), stderr.String()
}

const trainJob = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train}
spec: {runtimeRef: {name: RUNTIME}}
`

// Bad input is one line (fault, place, remedy), exit 2, and nothing is started: each of these would otherwise build and
// run a cluster.
func TestBadInput_ExitsWith2InOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	job := write("job.yaml", strings.Replace(trainJob, "RUNTIME", "torch-distributed", 1))
	orphan := write("orphan.yaml", "# a comment\n"+strings.Replace(trainJob, "RUNTIME", "torch-distribute", 1))
	torn := write("torn.yaml", trainJob+"---\nkind: [")
	twins := write("twins.yaml", `apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "1", memory: 1Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "1", memory: 1Gi, pods: "10"}}
`)
	queue := write("queue.yaml", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: training}\n")
	foreign := filepath.Join(dir, "foreign")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	write("foreign/thesis.txt", "years of work")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	gone := write(
		"gone.yaml",
		`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]}`,
	)

	for _, test := range []struct {
		name string
		args []string
		want []string // in this order, in the one line
	}{
		{"unknown command", []string{"upp"}, []string{"lockstep: ", "upp", "--help"}},
		{"unknown flag", []string{"up", "--flet=c1"}, []string{"up: ", "--flet", "--help"}},
		{"unknown mode", []string{"up", "--mode=half"}, []string{"--mode half: ", "full, groups or resources"}},
		{"unknown release", []string{"up", "--kubernetes=1.33"}, []string{"--kubernetes 1.33: ", "1.34, 1.35, 1.36, 1.37"}},
		{
			"a mode that the release lacks",
			[]string{"up", "--mode=full", "--kubernetes=1.36"},
			[]string{"--mode full --kubernetes 1.36: ", "scheduling.k8s.io/v1beta1", "--mode resources"},
		},
		{"unknown form", []string{"up", "-o", "yaml"}, []string{"-o yaml: ", "text or json"}},
		{"no patience", []string{"up", "--patience=0s"}, []string{"--patience 0s: ", "30s"}},
		{"no such nodes", []string{"up", "--nodes=fake:2"}, []string{"--nodes fake:2: ", "real:N"}},
		{"no number of nodes", []string{"up", "--nodes=real:0"}, []string{"--nodes real:0: ", "1 to 16"}},
		{"unknown fleet", []string{"up", "--fleet=gb300", "--jobs=" + job}, []string{"gb300", "gb200-72"}},
		{"twin nodes", []string{"up", "--fleet=" + twins, "--jobs=" + job}, []string{"twins.yaml:8", "node a", "twins.yaml:3"}},
		{"no such file", []string{"up", "--jobs=" + filepath.Join(dir, "none.yaml")}, []string{"none.yaml: "}},
		{"torn YAML", []string{"up", "--jobs=" + torn}, []string{"torn.yaml:7"}},
		{"no runtime", []string{"up", "--jobs=" + orphan}, []string{"orphan.yaml:", "torch-distribute", "torch-distributed"}},
		{"queue without Kueue", []string{"up", "--jobs=" + job, "--jobs=" + queue}, []string{"queue.yaml:1", "LocalQueue training", "--kueue"}},
		{"taken port", []string{"up", "--jobs=" + job, fmt.Sprintf("--port=%d", taken)}, []string{"--port", "in use"}},
		{"doctor without a cluster", []string{"doctor", "--kubeconfig=" + gone}, []string{"https://127.0.0.1:1: ", "cannot be used", "check"}},
		{"doctor in another form", []string{"doctor", "-o", "yaml"}, []string{"-o yaml: ", "text or json"}},
		{
			"support bundle without a cluster",
			[]string{"support-bundle", "--kubeconfig=" + gone},
			[]string{"https://127.0.0.1:1: ", "cannot be used", "check"},
		},
		{"support bundle without a file", []string{"support-bundle", "-o", ""}, []string{"-o: ", "no file is named", "lockstep-support.tar.gz"}},
		{"foreign directory", []string{"up", "--jobs=" + job, "--dir=" + foreign}, []string{foreign, "--dir"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, stderr := execute(t, test.args...)
			if code != 2 || out != "" {
				t.Errorf("exit %d and stdout %q, want exit 2 and nothing", code, out)
			}
			line, rest, _ := strings.Cut(stderr, "\n")
			if rest != "" || !strings.HasPrefix(line, "lockstep: ") {
				t.Errorf("stderr is not one line of ours:\n%s", stderr)
			}
			at := 0
			for _, part := range test.want {
				found := strings.Index(line[at:], part)
				if found < 0 {
					t.Errorf("%q is not in, or not in order in: %s", part, line)
					break
				}
				at += found
			}
		})
	}
}

func TestVersion_NamesTheEmbeddedKubernetes(t *testing.T) {
	for _, ask := range []string{"version", "--version"} {
		code, out, _ := execute(t, ask)
		if code != 0 || !strings.HasPrefix(out, "lockstep ") || !strings.Contains(out, "Kubernetes v1.37.2") {
			t.Errorf("%s: exit %d: %s", ask, code, out)
		}
	}
}
