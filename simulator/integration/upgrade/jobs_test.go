package upgrade_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/simulator/bench/loadtest"
)

// admission is the patch with which Kueue starts a job: its manager's runtime patch, and suspend.
const admission = `{"spec":{"suspend":false,"runtimePatches":[{"manager":"kueue.x-k8s.io/manager","trainingRuntimeSpec":{"template":{"spec":{
	"replicatedJobs":[{"name":"node","template":{"spec":{"template":{
		"metadata":{"labels":{"kueue.x-k8s.io/podset":"node"}},"spec":{"nodeSelector":{"kubernetes.io/arch":"arm64"}}}}}}]}}}}]}}`

// kinds returns the kinds of jobs: queued as Kueue queues them, suspended by their owners after their pods ran, and
// running.
func kinds() []string { return []string{"queued", "suspended", "running"} }

// selection selects jobs of each kind by their number.
type selection func(number int) bool

func even(number int) bool { return number%2 == 0 }

func all(int) bool { return true }

// jobs are the jobs of one test, in a namespace of their own. Several releases reconcile them, one after the other.
type jobs struct {
	t         *testing.T
	namespace string
	usage     func(context.Context) (loadtest.Usage, error)
	// untouched holds the state that must not change after the jobs were created: JobSets, pods and PodGroups of the
	// running ones.
	untouched fingerprints
	// resumed has the jobs that this test has resumed.
	resumed map[string]bool
	// free has the running jobs that the test has changed.
	free map[string]bool
	// perKind is the number of jobs of each kind that have been created.
	perKind int
	table   transcript
}

func newJobs(t *testing.T, namespace string) *jobs {
	t.Helper()
	client, err := rest.HTTPClientFor(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	j := &jobs{
		t:         t,
		namespace: namespace,
		usage:     loadtest.Scrape(client, shared.ControllerMetrics()),
		resumed:   map[string]bool{},
		untouched: fingerprints{},
		free:      map[string]bool{},
		table:     transcript{began: time.Now(), jobSets: map[string]types.UID{}},
	}
	t.Cleanup(func() { t.Log("\n" + j.table.String()) })
	return j
}

// install installs a release where none has been.
func (j *jobs) install(first release) {
	j.t.Helper()
	j.table.release = first.name
	installFirst(j.t, first)
	j.setUp()
}

// upgrade installs a release over the one that runs.
func (j *jobs) upgrade(next release) {
	j.t.Helper()
	j.table.release = next.name
	upgrade(j.t, next)
}

// rollBack installs an earlier release over the one that runs, and nothing else.
func (j *jobs) rollBack(earlier release) {
	j.t.Helper()
	j.table.release = earlier.name
	rollBack(j.t, earlier)
}

// names returns the names of the selected jobs of a kind that have been created.
func (j *jobs) names(kind string, selected selection) []string {
	var found []string
	for number := range j.perKind {
		if selected(number) {
			found = append(found, fmt.Sprintf("%s-%03d", kind, number))
		}
	}
	return found
}

// create creates the jobs of all kinds and waits until each is in the state that its kind names.
func (j *jobs) create(perKind int) {
	j.t.Helper()
	first := j.perKind
	j.perKind += perKind
	isNew := func(number int) bool { return number >= first }
	for _, kind := range kinds() {
		for _, name := range j.names(kind, isNew) {
			j.createJob(kind, name)
		}
	}
	j.until("the pods of the jobs that run", func(s snapshot) bool {
		return s.all(runs, j.names("suspended", isNew)) && s.all(runs, j.names("running", isNew))
	})
	for _, name := range j.names("suspended", isNew) {
		j.patch(name, `{"spec":{"suspend":true}}`)
	}
	now := j.until("the end of the suspended jobs' pods", func(s snapshot) bool {
		return s.all(waits, j.names("queued", isNew)) && s.all(waits, j.names("suspended", isNew)) &&
			s.all(runs, j.names("running", isNew))
	})
	for object, fingerprint := range now.running {
		if isNew(numberOf(fingerprint.job)) {
			j.untouched[object] = fingerprint
		}
	}
	for name, job := range now.jobs {
		if !job.reports {
			j.t.Errorf("the pods of %s do not report to the status server, whose gate is on", name)
		}
	}
	j.note("created", now)
}

// finish resumes the selected jobs that wait, and then completes the pods of all selected jobs. A job that the
// controller cannot start still waits.
func (j *jobs) finish(selected selection) {
	j.t.Helper()
	before := j.look()
	due := map[string]bool{}
	for _, kind := range kinds() {
		for _, name := range j.names(kind, selected) {
			due[name] = before.jobs[name].state() != complete
			if kind == "running" || !due[name] || j.resumed[name] {
				continue
			}
			j.resumed[name] = true
			if kind == "queued" {
				j.patch(name, admission)
			} else {
				j.patch(name, `{"spec":{"suspend":false}}`)
			}
		}
	}
	isDue := func(name string) bool { return due[name] }
	j.until("the pods of the resumed jobs", func(s snapshot) bool { return s.noneStarts(isDue) })
	j.completePods(isDue)
	now := j.until("the end of the jobs", func(s snapshot) bool { return s.noneRuns(isDue) })
	j.note("resumed and ended", now)
}

// completePods sets the pods of the due jobs to Succeeded.
func (j *jobs) completePods(due func(string) bool) {
	j.t.Helper()
	shared.Succeed(j.t, slices.DeleteFunc(j.listPods(), func(pod corev1.Pod) bool {
		return !due(pod.Labels[labelJobSet]) || pod.Status.Phase != corev1.PodRunning
	}))
}

// until polls snapshots until one satisfies holds, and returns that one.
func (j *jobs) until(what string, holds func(snapshot) bool) snapshot {
	j.t.Helper()
	var last snapshot
	j.eventually(what, func() bool {
		last = j.look()
		return holds(last)
	})
	return last
}

// eventually fails the test unless a condition holds within five minutes.
func (j *jobs) eventually(what string, holds func() bool) {
	j.t.Helper()
	err := wait.PollUntilContextTimeout(j.t.Context(), time.Second, 5*time.Minute, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		j.note("waiting for "+what, j.look())
		j.t.Fatalf("%s did not happen: %v", what, err)
	}
}
