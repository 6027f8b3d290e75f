package frameworks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// seen is what a user of the SDK sees of a job that has ended.
type seen struct {
	Name, Status string
	Seconds      float64
	Steps        map[string]struct{ Status, Pod, Log string }
	Events       []string
}

// log is the output of all steps.
func (s seen) log() string {
	var all strings.Builder
	for _, step := range s.Steps {
		all.WriteString(step.Log + "\n")
	}
	return all.String()
}

// play runs a scenario of programs/play.py in the userland. Its result is the transcript.
func play(t *testing.T, scenario string) seen {
	t.Helper()
	root, err := cluster.SourceTree()
	if err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(root, "simulator", "integration", "frameworks", "programs")
	if err := userland.Share(programs, "programs"); err != nil {
		t.Fatal(err)
	}
	if err := userland.Share(filepath.Dir(shared.Kubeconfig()), "kubeconfig"); err != nil {
		t.Fatal(err)
	}
	command := userland.Command(t.Context(), "python", "/tmp/programs/play.py", scenario)
	command.Env = append(command.Env, "KUBECONFIG=/tmp/kubeconfig/"+filepath.Base(shared.Kubeconfig()))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("playing %s: %v", scenario, err)
	}
	var job seen
	if err := json.Unmarshal(out, &job); err != nil {
		t.Fatalf("%s prints %s: %v", scenario, out, err)
	}
	t.Logf("%s: %s after %.1f s", job.Name, job.Status, job.Seconds)
	for name, step := range job.Steps {
		t.Logf("%s (%s, %s):\n%s", name, step.Pod, step.Status, step.Log)
	}
	for _, event := range job.Events {
		t.Log(event)
	}
	return job
}

// complete plays a scenario that has to complete, with lines that its output has to have.
func complete(t *testing.T, scenario string, lines ...string) seen {
	t.Helper()
	job := play(t, scenario)
	if job.Status != "Complete" {
		t.Errorf("%s is %s", job.Name, job.Status)
	}
	log := job.log()
	for _, line := range lines {
		if !strings.Contains(log, line) {
			t.Errorf("%s does not print %q", job.Name, line)
		}
	}
	return job
}
