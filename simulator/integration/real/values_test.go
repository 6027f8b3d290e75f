package real_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

// Other values than those of the chart work, too, and so does Helm 3.
func TestChartValues_OtherThanDefaults(t *testing.T) {
	t.Run("another namespace and Helm 3", func(t *testing.T) {
		const in = "gangs"
		install(
			t,
			"helm3",
			chartOf(t, "e2e"),
			"--namespace",
			in,
			"--set",
			"namespaces={default}",
			"--set",
			"manager.replicas=1",
		)
		submit(t, "first", "1s", 1)
		eventually(t, time.Minute, "the gang", func() bool { return started(t, "first") })
		eventually(t, time.Minute, "its end", func() bool { return completed(t, "first") })
		change := []string{"upgrade", "lockstep", chartOf(t, "e2e"), "--reuse-values", "--set", "scheduler.replicas=1"}
		command(t, "helm3", append(change, waiting(in)...)...)
		command(t, "helm3", append([]string{"rollback", "lockstep", "1"}, waiting(in)...)...)
		uninstall(t, "helm3", in)
		kubectl(t, "delete", "trainjobs", "--all", "--timeout=60s")
	})
	t.Run("without TrainJobs", func(t *testing.T) {
		install(t, "helm", chartOf(t, "e2e"), "--set", "manager.enabled=false,jobset.install=false")
		kubectl(t, "apply", "-f", indexedJob(t))
		kubectl(t, "wait", "--for=condition=Complete", "--timeout=1m", "job/sweep")
		list, err := shared.Client.CoreV1().
			Pods("default").
			List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=sweep"})
		if err != nil || len(list.Items) != 4 {
			t.Fatalf("%d pods (%v)", len(list.Items), err)
		}
		for i := range list.Items {
			if by := list.Items[i].Spec.SchedulerName; by != "lockstep-scheduler" {
				t.Errorf("a pod is of scheduler %s", by)
			}
		}
		kubectl(t, "get", "podgroups.scheduling.lockstep.dev", "sweep", "-o", "yaml")
		kubectl(t, "delete", "-f", indexedJob(t), "--timeout=60s")
		uninstall(t, "helm", namespace())
	})
}

// indexedJob writes a file with a Job of four pods that are a gang by their label.
func indexedJob(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sweep.yaml")
	const job = `apiVersion: scheduling.lockstep.dev/v1beta1
kind: PodGroup
metadata: {name: sweep}
spec: {schedulingPolicy: {gang: {minCount: 4}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: sweep}
spec:
  completions: 4
  parallelism: 4
  completionMode: Indexed
  template:
    metadata: {labels: {lockstep.dev/pod-group: sweep}}
    spec:
      schedulerName: lockstep-scheduler
      restartPolicy: Never
      containers:
      - name: main
        image: ` + realnode.RankImage + `
        command: [/usr/bin/rank, 1s]
        resources: {limits: {` + gpu + `: 4}}
`
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
