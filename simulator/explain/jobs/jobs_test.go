package jobs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/explain/jobs"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
)

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// shipped is a cluster with the shipped runtimes and two PriorityClasses.
func shipped(t *testing.T) capture.Snapshot {
	t.Helper()
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	var s capture.Snapshot
	for _, object := range catalog {
		r := &trainerv1alpha1.ClusterTrainingRuntime{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, r); err != nil {
			t.Fatal(err)
		}
		s.ClusterTrainingRuntimes = append(s.ClusterTrainingRuntimes, r)
	}
	s.PriorityClasses = []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 10, GlobalDefault: true},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "polite"}, Value: 50,
			PreemptionPolicy: new(corev1.PreemptNever),
		},
	}
	return s
}

func load(t *testing.T, content string) workload.Workload {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := workload.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Every sample can be submitted, and its pods are those that JobSet would make: as many as have to start together, each
// with the labels that identify its rank.
func TestSubmit_SamplesBecomeGangs(t *testing.T) {
	w, err := workload.Load([]string{filepath.Join("..", "..", "..", "manifests", "samples")})
	if err != nil {
		t.Fatal(err)
	}
	submitted, err := jobs.NewCluster(shipped(t)).Submit(t.Context(), w, now())
	if err != nil {
		t.Fatal(err)
	}
	if len(submitted) != len(w.TrainJobs()) {
		t.Errorf("%d jobs of %d", len(submitted), len(w.TrainJobs()))
	}
	for _, job := range submitted {
		for _, g := range job.Groups {
			if want := int(g.PodGroup.Spec.SchedulingPolicy.Gang.MinCount); len(g.Members) != want {
				t.Errorf("%s: %d members, %d start together", job.Name, len(g.Members), want)
			}
			seen := map[string]bool{}
			for _, p := range g.Members {
				rank := p.Labels["jobset.sigs.k8s.io/replicatedjob-name"] + p.Labels["jobset.sigs.k8s.io/job-index"] +
					"/" + p.Labels["batch.kubernetes.io/job-completion-index"]
				grouped := *p.Spec.SchedulingGroup.PodGroupName == g.PodGroup.Name
				ordered := *p.Spec.Priority == 10 && *g.PodGroup.Spec.Priority == 10
				if seen[rank] || !grouped || !ordered || p.Spec.SchedulerName != "lockstep-scheduler" {
					t.Errorf("%s: %s is not what it should be: %+v", job.Name, rank, p.Spec)
				}
				seen[rank] = true
				for _, c := range p.Spec.Containers {
					for name := range c.Resources.Limits {
						if _, ok := c.Resources.Requests[name]; !ok {
							t.Errorf("%s requests no %s, and is limited to some", p.Name, name)
						}
					}
				}
			}
		}
	}
}

const polite = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: own, labels: {trainer.kubeflow.org/framework: plain}}
spec:
  mlPolicy: {numNodes: 2}
  template: {spec: {replicatedJobs: [{name: node, replicas: 1, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
    spec: {template: {spec: {priorityClassName: polite, containers: [{name: node, image: i}]}}}}}]}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job, labels: {kueue.x-k8s.io/queue-name: lab}}
spec: {runtimeRef: {name: own, kind: TrainingRuntime}}
`

// A file brings its own runtimes and PriorityClasses, and the answer says that Kueue is first.
func TestSubmit_FileBringsItsRuntimes(t *testing.T) {
	submitted, err := jobs.NewCluster(shipped(t)).Submit(t.Context(), load(t, polite), now())
	if err != nil {
		t.Fatal(err)
	}
	g := submitted[0].Groups[0]
	if len(g.Members) != 2 || *g.Members[0].Spec.Priority != 50 ||
		*g.Members[1].Spec.PreemptionPolicy != corev1.PreemptNever ||
		g.Members[1].Name != "job-node-0-1" {
		t.Errorf("%+v", g.Members)
	}
	if len(submitted[0].Notes) != 1 || !strings.Contains(submitted[0].Notes[0], "Kueue's admission in queue lab") {
		t.Errorf("notes %q", submitted[0].Notes)
	}
	_, err = jobs.NewCluster(shipped(t)).
		Submit(t.Context(), load(t, strings.Replace(polite, "polite", "rude", 1)), now())
	if !badinput.Is(err) || !strings.Contains(err.Error(), "no PriorityClass rude; there are: usual, polite") {
		t.Errorf("got %v", err)
	}
	class := "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: rude}\nvalue: 99\n---\n"
	submitted, err = jobs.NewCluster(shipped(t)).
		Submit(t.Context(), load(t, class+strings.Replace(polite, "polite", "rude", 1)), now())
	if err != nil || *submitted[0].Groups[0].PodGroup.Spec.Priority != 99 {
		t.Errorf("%v", err)
	}
}

// Whether a lost member is recreated alone follows from the controller's rendering: a job's wish, or its runtime's own
// policies.
func TestObjects_ReplacesSingleMembers(t *testing.T) {
	cluster := shipped(t)
	for name, annotations := range map[string]map[string]string{
		"replaces": {"lockstep.dev/on-disruption": "replace"}, "restarts": nil,
	} {
		job := &trainerv1alpha1.TrainJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name), Annotations: annotations},
			Spec:       trainerv1alpha1.TrainJobSpec{RuntimeRef: trainerv1alpha1.RuntimeRef{Name: "torch-distributed"}},
		}
		cluster.TrainJobs = append(cluster.TrainJobs, job)
		planned, err := jobs.NewCluster(cluster).Plan(job)
		if err != nil {
			t.Fatal(err)
		}
		cluster.PodGroups = append(cluster.PodGroups, planned.PodGroups...)
	}
	replaces := jobs.NewCluster(cluster).Objects().Replaces
	if !replaces[types.NamespacedName{Namespace: "lab", Name: "replaces"}] ||
		replaces[types.NamespacedName{Namespace: "lab", Name: "restarts"}] {
		t.Errorf("%v", replaces)
	}
}

// The controller's default for gangs is not in the cluster, but the objects that it made are.
func TestSubmit_GangDefaultFromRunningJobs(t *testing.T) {
	cluster := shipped(t)
	job := "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: new}\n" +
		"spec: {runtimeRef: {name: torch-distributed}}\n"
	groups := func() int {
		submitted, err := jobs.NewCluster(cluster).Submit(t.Context(), load(t, job), now())
		if err != nil {
			t.Fatal(err)
		}
		return len(submitted[0].Groups)
	}
	if groups() != 1 {
		t.Error("no gang in an empty cluster")
	}
	cluster.TrainJobs = []*trainerv1alpha1.TrainJob{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"},
		Spec:       trainerv1alpha1.TrainJobSpec{RuntimeRef: trainerv1alpha1.RuntimeRef{Name: "torch-distributed"}},
	}}
	if groups() != 1 {
		t.Error("a job that has no pods yet shows nothing")
	}
	cluster.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default",
		Name:      "old-node-0-0-x",
		Labels:    map[string]string{"jobset.sigs.k8s.io/jobset-name": "old"},
	}}}
	if groups() != 0 {
		t.Error("a gang, although the controller makes none")
	}
}
