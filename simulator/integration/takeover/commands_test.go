package takeover_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// folderOfTrainer stands in printed commands for a checkout of Kubeflow Trainer.
const folderOfTrainer = "trainer"

// kubectl runs kubectl in the source tree, prints the command and its output as block of docs/takeover.md, and fails
// the test if it fails.
func (s scene) kubectl(block string, args ...string) {
	s.t.Helper()
	if out, err := s.tryKubectl(block, args...); err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (s scene) tryKubectl(block string, args ...string) (string, error) {
	s.t.Helper()
	actual, shown := make([]string, len(args)), make([]string, len(args))
	for i, arg := range args {
		actual[i] = strings.Replace(arg, folderOfTrainer+"/manifests/base", s.release.Manifests, 1)
		shown[i] = arg
		if strings.ContainsAny(arg, `{"`) {
			shown[i] = "'" + arg + "'" // as a shell has to get it
		}
	}
	command := exec.CommandContext(s.t.Context(), filepath.Join(sourceTree(s.t), "bin", "kubectl"), actual...)
	command.Dir = sourceTree(s.t)
	// Its cache names versions of the CRDs that were there before.
	command.Env = append(os.Environ(), "KUBECACHEDIR="+s.t.TempDir())
	text, err := command.CombinedOutput()
	out := strings.ReplaceAll(string(text), s.release.Manifests, folderOfTrainer+"/manifests/base")
	s.show(block, "kubectl "+strings.Join(shown, " "), out)
	return out, err
}

// adopt runs lockstep adopt --dry-run for the scene's jobs as a table and as JSON, prints the table, and returns the
// answers by job.
func (s scene) adopt(block string, wantCode int, flags ...string) map[string]controller.AdoptedJob {
	s.t.Helper()
	flags = append([]string{"adopt", "--dry-run", "-n", s.team}, flags...)
	code, table := s.lockstep(flags...)
	s.show(block, "lockstep "+strings.Join(flags, " "), table)
	jsonCode, text := s.lockstep(append([]string{flags[0], "-o", "json"}, flags[1:]...)...)
	if code != wantCode || jsonCode != wantCode {
		s.t.Errorf("lockstep adopt exits with %d, as JSON with %d; want %d", code, jsonCode, wantCode)
	}
	var jobs []controller.AdoptedJob
	if err := json.Unmarshal([]byte(text), &jobs); err != nil {
		s.t.Fatalf("lockstep adopt -o json: %v\n%s", err, text)
	}
	found := map[string]controller.AdoptedJob{}
	for _, job := range jobs {
		found[job.Name] = job
	}
	return found
}

func (s scene) lockstep(args ...string) (code int, out string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(s.t.Context(), args, cli.Environment{Out: &stdout, Err: &stderr, Clock: clock.RealClock{}})
	if stderr.Len() > 0 {
		s.t.Errorf("lockstep %s: %s", strings.Join(args, " "), stderr.String())
	}
	return code, stdout.String()
}

// actions fails the test unless the jobs' actions are these.
func (s scene) actions(found map[string]controller.AdoptedJob, want map[string]trainjob.Action) {
	s.t.Helper()
	for name, action := range want {
		if found[name].Action != action {
			s.t.Errorf("lockstep adopt says of %s: %+v, want %s", name, found[name], action)
		}
	}
	if len(found) != len(want) {
		s.t.Errorf("lockstep adopt lists %d jobs, want %d", len(found), len(want))
	}
}

// show prints a command and its output, and records both for the page.
func (s scene) show(block, command, out string) {
	s.t.Helper()
	text := page.Transcript(command, out)
	s.say("\n%s", text)
	if block != "" {
		s.blocks[block] = strings.TrimRight(s.blocks[block]+"\n"+text, "\n")
	}
}

// page fails the test unless docs/takeover.md has the recorded blocks, or writes them there.
func (s scene) page() {
	s.t.Helper()
	page.Page{
		File:   "docs/takeover.md",
		Marker: "make test-takeover",
		Write:  *write,
		Mend:   "make test-takeover TAKEOVER=-write",
	}.HasOnly(s.t, s.blocks)
}

func readObject(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		t.Fatal(err)
	}
	return &object
}

func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
