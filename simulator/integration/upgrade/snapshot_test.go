package upgrade_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const labelJobSet = "jobset.sigs.k8s.io/jobset-name"

// The states of a job: its JobSet is suspended and it has no pods, all its pods run, it is complete, or none of those.
const (
	waits    = "wait"
	runs     = "run"
	complete = "complete"
	between  = "between"
)

// jobSeen is one job of a snapshot.
type jobSeen struct {
	name, kind string
	complete   bool
	// jobSet is the UID of the JobSet; empty if there is none.
	jobSet    types.UID
	suspended bool
	// resumed reports whether the TrainJob says that it was resumed.
	resumed bool
	// reports is set if the pods of the JobSet know the status server, turned if admission wrote the beginning of its
	// wait.
	reports, turned bool
	// added reports whether the JobSet has the next release's variable.
	added bool
	// pods counts the pods that have not ended, running those that run and are not being deleted.
	pods, running int
}

func (j jobSeen) state() string {
	switch {
	case j.complete:
		return complete
	case j.jobSet != "" && j.suspended && j.pods == 0:
		return waits
	case !j.suspended && j.running == podsPerJob:
		return runs
	default:
		return between
	}
}

// fingerprint identifies an object of a job and everything of it that a release could change: its UID and a digest.
type fingerprint struct{ job, digest string }

// fingerprints maps objects ("Pod running-001-node-0-0-x7k2p") to their fingerprints.
type fingerprints map[string]fingerprint

// snapshot has the state of all jobs at one time.
type snapshot struct {
	jobs map[string]jobSeen
	// running has the JobSets, pods and PodGroups of the jobs of that kind.
	running fingerprints
}

func (s snapshot) count(kind, state string) int {
	count := 0
	for _, job := range s.jobs {
		if job.kind == kind && job.state() == state {
			count++
		}
	}
	return count
}

// all reports whether all jobs of these names are in a state.
func (s snapshot) all(state string, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return s.jobs[name].state() != state })
}

// stuck reports whether the job waits though it says that it was resumed, which it does once its JobSet was patched, or
// was refused. Events would say more, but a client that writes many of them drops some.
func (j jobSeen) stuck() bool { return j.resumed && j.state() == waits }

// noneStarts reports whether each due job runs, is complete, or is stuck.
func (s snapshot) noneStarts(due func(string) bool) bool {
	for name, job := range s.jobs {
		state := job.state()
		if due(name) && state != runs && state != complete && !job.stuck() {
			return false
		}
	}
	return true
}

// noneRuns reports whether each due job is complete or waits.
func (s snapshot) noneRuns(due func(string) bool) bool {
	for name, job := range s.jobs {
		if state := job.state(); due(name) && state != complete && state != waits {
			return false
		}
	}
	return true
}

// look lists the jobs, and then their JobSets and pods: objects that a job's status mentions existed before.
func (j *jobs) look() snapshot {
	j.t.Helper()
	now := snapshot{jobs: map[string]jobSeen{}, running: fingerprints{}}
	for _, job := range j.list(trainer("trainjobs")) {
		kind, _, _ := strings.Cut(job.GetName(), "-")
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		now.jobs[job.GetName()] = jobSeen{
			name:     job.GetName(),
			kind:     kind,
			complete: has(conditions, "Complete", "True"),
			resumed:  has(conditions, "Suspended", "False"),
			turned:   job.GetAnnotations()["state.lockstep.dev/queued-at"] != "",
		}
	}
	for _, jobSet := range j.list(schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}) {
		job := now.jobs[jobSet.GetName()]
		job.jobSet = jobSet.GetUID()
		job.suspended, _, _ = unstructured.NestedBool(jobSet.Object, "spec", "suspend")
		job.reports = strings.Contains(fmt.Sprint(jobSet.Object["spec"]), "KUBEFLOW_TRAINER_SERVER_URL")
		job.added = strings.Contains(fmt.Sprint(jobSet.Object["spec"]), added)
		now.jobs[jobSet.GetName()] = job
		if job.kind == "running" {
			now.keep("JobSet", job.name, &jobSet, j.digest(&jobSet, jobSet.Object["spec"]))
		}
	}
	for _, pod := range j.listPods() {
		name := pod.Labels[labelJobSet]
		job := now.jobs[name]
		if pod.Status.Phase != corev1.PodSucceeded {
			job.pods++
		}
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			job.running++
		}
		now.jobs[name] = job
		if job.kind == "running" {
			now.keep("Pod", name, &pod, j.digest(&pod, pod.Spec))
		}
	}
	j.lookAtGroups(now)
	return now
}

// keep adds an object of a running job.
func (s snapshot) keep(kind, job string, object metav1.Object, digest string) {
	s.running[kind+" "+object.GetName()] = fingerprint{job, digest}
}

// lookAtGroups adds the PodGroups of running jobs. Their annotations follow the time, so that only their identity is
// compared. They are deleted when the job ends.
func (j *jobs) lookAtGroups(now snapshot) {
	j.t.Helper()
	groups, err := shared.Client.SchedulingV1beta1().PodGroups(j.namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	for _, group := range groups.Items {
		owner := metav1.GetControllerOf(&group)
		if owner == nil || now.jobs[owner.Name].kind != "running" || now.jobs[owner.Name].complete {
			continue
		}
		now.keep("PodGroup", owner.Name, &group, string(group.UID))
	}
}

// digest returns the UID of an object and a digest of its labels, annotations and spec, marked if the object is being
// deleted.
func (j *jobs) digest(object metav1.Object, spec any) string {
	j.t.Helper()
	text, err := json.Marshal([]any{object.GetLabels(), object.GetAnnotations(), spec})
	if err != nil {
		j.t.Fatal(err)
	}
	digest := fmt.Sprintf("%s %.4x", object.GetUID(), sha256.Sum256(text))
	if object.GetDeletionTimestamp() != nil {
		digest += " deleting"
	}
	return digest
}

func has(conditions []any, kind, status string) bool {
	return slices.ContainsFunc(conditions, func(item any) bool {
		condition, ok := item.(map[string]any)
		return ok && condition["type"] == kind && condition["status"] == status
	})
}

func (j *jobs) list(resource schema.GroupVersionResource) []unstructured.Unstructured {
	j.t.Helper()
	found, err := shared.Dynamic.Resource(resource).Namespace(j.namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	return found.Items
}

func (j *jobs) listPods() []corev1.Pod {
	j.t.Helper()
	found, err := shared.Client.CoreV1().
		Pods(j.namespace).
		List(j.t.Context(), metav1.ListOptions{LabelSelector: labelJobSet})
	if err != nil {
		j.t.Fatal(err)
	}
	return found.Items
}
