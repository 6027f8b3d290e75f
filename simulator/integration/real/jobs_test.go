package real_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

// userSecret is in the environment of every rank.
const userSecret = "plainly-mine"

// started reports whether both ranks of a job run, or have run.
func started(t *testing.T, name string) bool {
	t.Helper()
	return len(podsOf(t, name, corev1.PodRunning))+len(podsOf(t, name, corev1.PodSucceeded)) == 2
}

// runs reports whether both ranks of a job run.
func runs(t *testing.T, name string) bool {
	t.Helper()
	return len(podsOf(t, name, corev1.PodRunning)) == 2
}

// submit creates a TrainJob of two ranks that run so long, with so many GPUs each.
func submit(t *testing.T, name, runs string, gpus int) {
	t.Helper()
	kubectl(t, "apply", "-f", manifest(t, name, runs, gpus))
}

// manifest writes a file with such a TrainJob.
func manifest(t *testing.T, name, runs string, gpus int) string {
	t.Helper()
	job := fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    image: %s
    command: [/usr/bin/rank]
    args: [%s]
    env: [{name: KEY, value: %s}]
    resourcesPerNode: {limits: {%s: %d}}
`, name, realnode.RankImage, runs, userSecret, gpu, gpus)
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// pod is the part of a pod that must not change while it runs.
type pod struct {
	uid      types.UID
	phase    corev1.PodPhase
	node     string
	restarts int32
}

func podsOf(t *testing.T, job string, phase corev1.PodPhase) map[string]pod {
	t.Helper()
	list, err := shared.Client.CoreV1().Pods("default").
		List(t.Context(), metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]pod{}
	for i := range list.Items {
		one := &list.Items[i]
		if phase != "" && one.Status.Phase != phase {
			continue
		}
		of := pod{uid: one.UID, phase: one.Status.Phase, node: one.Spec.NodeName}
		for _, container := range one.Status.ContainerStatuses {
			of.restarts += container.RestartCount
		}
		found[one.Name] = of
	}
	return found
}

func undisturbed(t *testing.T, what string, before map[string]pod) {
	t.Helper()
	after := podsOf(t, "running", "")
	for name, was := range before {
		if is := after[name]; is != was {
			t.Errorf("%s changed pod %s from %v to %v", what, name, was, is)
		}
	}
}

// completed reports whether a TrainJob says that it is complete.
func completed(t *testing.T, name string) bool {
	t.Helper()
	var job struct {
		Status struct{ Conditions []metav1.Condition }
	}
	text, err := exec.CommandContext(t.Context(), filepath.Join(sourceTree(t), "bin", "kubectl"),
		"--kubeconfig="+shared.Kubeconfig(), "get", "trainjob", name, "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(text, &job)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(job.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Complete" && c.Status == metav1.ConditionTrue
	})
}

// endOf deletes all TrainJobs after a removal, and waits until nothing of a job that ran is left.
func endOf(t *testing.T, job string) {
	t.Helper()
	kubectl(t, "delete", "trainjobs", "--all", "--timeout=60s")
	eventually(t, time.Minute, "the end of what ran", func() bool {
		return len(podsOf(t, job, "")) == 0 &&
			kubectl(t, "get", "podgroups.scheduling.lockstep.dev", "-A", "-o", "name") == ""
	})
}
