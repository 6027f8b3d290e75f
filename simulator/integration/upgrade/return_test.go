package upgrade_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotation that the previous release refuses, and its value in this test.
const (
	priorityKey   = "lockstep.dev/priority-class"
	priorityClass = "upgrade-urgent"
)

// createLater creates jobs that only this release can have made: MPI and Flux jobs whose Secrets have random names,
// jobs with a priority class, and jobs that wait since their owner resumed them.
func (j *jobs) createLater() {
	j.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: priorityClass}, Value: 7}
	_, err := shared.Client.SchedulingV1().PriorityClasses().Create(j.t.Context(), class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		j.t.Fatal(err)
	}
	j.createRuntime(urgentRuntime())
	j.create(jobsLater)
	later := j.names("suspended", func(number int) bool { return number >= j.perKind-jobsLater })
	for _, suspend := range []string{"false", "true"} {
		for _, name := range later {
			j.patch(name, `{"spec":{"suspend":`+suspend+`}}`)
		}
	}
	now := j.until(
		"the end of the pods of jobs that are suspended again",
		func(s snapshot) bool { return s.all(waits, later) },
	)
	for _, name := range later {
		if !now.jobs[name].turned {
			j.t.Errorf("%s was resumed by its owner, and nothing says when", name)
		}
	}
}

// jobsLater is the number of jobs of each kind that this release creates.
const jobsLater = 10

// goBack follows docs/trust.md: it stops this release, runs the commands of the page, and installs the previous one.
func (j *jobs) goBack(earlier release) {
	j.t.Helper()
	must(j.t, shared.StopRelease(j.t.Context()))
	documented(j.t, "jobsets")
	j.note("stopped, commands", j.look())
	j.table.release = earlier.name
	must(j.t, shared.ApplyRelease(j.t.Context(), earlier.Release))
	must(j.t, shared.StartRelease(j.t.Context(), earlier.Release))
	// It has rendered all that it can when it has rendered the jobs without a class.
	waiting := func(class bool) []string {
		return slices.DeleteFunc(
			slices.Concat(j.names("queued", all), j.names("suspended", all)),
			func(name string) bool {
				return namesClass(name) != class || j.resumed[name]
			},
		)
	}
	j.until("the JobSets of the earlier release", func(s snapshot) bool { return s.all(waits, waiting(false)) })
	for _, name := range waiting(true) {
		if state := j.look().jobs[name].state(); state != between {
			j.t.Errorf(
				"%s has a priority class, and the previous release has rendered it: it is in state %q",
				name,
				state,
			)
		}
	}
	j.note("without priorities", j.look())
	documented(j.t, "keys")
	documented(j.t, "copy", "NAMESPACE", j.namespace, "JOB", "queued-109", "JOB", "suspended-109", "JOB", "running-109")
	j.note("commands", j.until("the JobSets of all jobs", func(s snapshot) bool { return s.all(waits, waiting(true)) }))
}

// documented runs the commands of a block of docs/trust.md. Where they have placeholders, they run for each value.
func documented(t *testing.T, block string, values ...string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(sourceTree(t), "docs", "trust.md"))
	must(t, err)
	found := regexp.MustCompile("(?s)<!-- make test-full: " + block + " -->\n```sh\n(.*?)```\n").FindSubmatch(page)
	if found == nil {
		t.Fatalf("docs/trust.md has no block %q", block)
	}
	script := string(found[1])
	if len(values) == 0 {
		shell(t, script)
		return
	}
	script = strings.ReplaceAll(script, values[0], values[1])
	for i := 2; i < len(values); i += 2 {
		shell(t, strings.ReplaceAll(script, values[i], values[i+1]))
	}
}

// shell runs commands with kubectl and lockstep, and fails the test if the last one fails.
func shell(t *testing.T, script string) {
	t.Helper()
	tools := filepath.Join(shared.Dir(), "tools")
	if _, err := os.Stat(tools); err != nil {
		runCommand(t, "go", "-C", sourceTree(t), "build", "-p", "2", "-o", tools+"/", "./simulator/cmd/lockstep")
	}
	path := tools + ":" + filepath.Join(sourceTree(t), "bin") + ":" + os.Getenv("PATH")
	command := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail; "+script)
	command.Env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+shared.Kubeconfig(), "KUBECACHEDIR="+t.TempDir())
	out, err := command.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Logf(
		"$ %s\n%s\n(%d lines)",
		strings.TrimSpace(script),
		strings.Join(lines[:min(len(lines), 4)], "\n"),
		len(lines),
	)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// suspendReturned suspends running jobs under the previous release and resumes them. Their JobSets do not take its
// rendering until they are deleted, as docs/trust.md says.
func (j *jobs) suspendReturned(names ...string) {
	j.t.Helper()
	for _, name := range names {
		j.free[name] = true
		for object, was := range j.untouched {
			if was.job == name {
				delete(j.untouched, object)
			}
		}
		j.patch(name, `{"spec":{"suspend":true}}`)
	}
	j.until("the end of their pods", func(s snapshot) bool { return s.all(waits, names) })
	for _, name := range names {
		j.patch(name, `{"spec":{"suspend":false}}`)
	}
	j.note("resumed after a suspension", j.until("their refusal", func(s snapshot) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !s.jobs[name].stuck() })
	}))
	for _, name := range names {
		documented(j.t, "one", "NAMESPACE", j.namespace, "JOB", name)
	}
	j.note("their JobSets deleted", j.until("their pods", func(s snapshot) bool { return s.all(runs, names) }))
	j.t.Logf("%v could not be resumed until their JobSets were deleted", names)
}
