package datacache_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A cache is no part of its job's gang: it is up while the gang waits for the GPUs of another one, and the gang starts
// when it has them.
func TestGang_WaitsBesideItsCache(t *testing.T) {
	sets.start(t)
	const job, before = "beside-cache", "before-it"
	submit(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"name": before, "namespace": namespace},
		"spec": map[string]any{
			"runtimeRef": map[string]any{"name": "torch-distributed"},
			"trainer": map[string]any{
				"numNodes": int64(nodeCount), "image": images["node"], "command": []any{"sleep", "600"},
				"resourcesPerNode": map[string]any{"limits": map[string]any{gpu: int64(gpusPerNode)}},
			},
		},
	}})
	within(
		t,
		time.Minute,
		"the job before it",
		func() bool { return statusOf(t, before).Scheduling.Phase == "Running" },
	)
	eventLog := follow(t, job)
	submit(t, sample(t, job, gpusPerNode, small()))
	within(t, 2*time.Minute, "its gang waits beside its cache", func() bool {
		eventLog.look()
		cache := slices.DeleteFunc(
			step(t, job, "cache"),
			func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning },
		)
		return len(cache) == 3 && len(step(t, job, "node")) == nodeCount &&
			statusOf(t, job).Scheduling.Phase == "Waiting" &&
			strings.Contains(statusOf(t, job).Scheduling.Reason, "2 nodes")
	})
	remove(t.Context(), t, before)
	eventLog.note("TrainJob " + before + " is deleted")
	within(t, 2*time.Minute, "its end", func() bool {
		eventLog.look()
		return statusOf(t, job).is("Complete")
	})
	t.Logf("what happened:\n%s", eventLog.text())
}

// Kubeflow's SDK creates such a job by DataCacheInitializer.
func TestSDK_DataCacheInitializer(t *testing.T) {
	sets.start(t)
	const job = "by-sdk"
	t.Cleanup(func() { remove(context.WithoutCancel(t.Context()), t, job) })
	command := userland.Command(t.Context(), "python", "/tmp/programs/play.py", job, table)
	command.Env = append(command.Env, "KUBECONFIG=/tmp/kubeconfig/"+filepath.Base(shared.Kubeconfig()))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Status string
		Steps  map[string]string
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", seen.Status, seen.Steps)
	if seen.Status != "Complete" {
		t.Errorf("it is %s", seen.Status)
	}
	expect(t, seen.Steps["dataset-initializer"], "LeaderWorkerSet by-sdk-cache is ready")
	expect(t, seen.Steps["node-0"], "all ranks read 1000 rows, 1000 different, from 0 to 999")
}
