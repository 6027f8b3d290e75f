package kueue_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// teamsManager is the manager of the patch in the sample of low priority.
const teamsManager = "platform.example.com/vision-team"

const samples = "../../../manifests/samples-kueue/"

func TestKueue_ComponentRuns(t *testing.T) {
	at := slices.IndexFunc(shared.Components(), func(c cluster.Component) bool { return c.Name == "kueue" })
	if at < 0 {
		t.Fatalf("the components are %v", shared.Components())
	}
	kueue := shared.Components()[at]
	t.Logf("%s %s, process %d", kueue.Name, kueue.Version, kueue.PID)
	if !strings.HasPrefix(kueue.Version, "v0.19.") || kueue.PID == 0 {
		t.Errorf("Kueue is %+v", kueue)
	}
}

// The samples as they ship: a job is admitted by Kueue's patch beside its owner's, is preempted by one of higher
// priority, is admitted again, and both complete.
func TestKueue_PreemptedJobCompletes(t *testing.T) {
	h := record(t, "default")
	low := play(t, samples+"queue.yaml", samples+"sweep.yaml")
	first, at := h.next(t, 0, "sweep", "admitted with both patches", state.admitted)
	teams, both := first.patch(teamsManager)
	if !both {
		t.Errorf("the owner's patch is gone: %v", first)
	}
	show(t, first)
	started := expectPods(t, "sweep", 4)
	high := play(t, samples+"urgent.yaml") // which arrives eight seconds later: sweep runs for twenty

	preempted, at := h.next(t, at, "sweep", "preempted: suspended, and nothing of it runs", state.quiet)
	if kept, _ := preempted.patch(teamsManager); !reflect.DeepEqual(kept, teams) {
		t.Errorf("the owner's patch has changed with the preemption: %v, was %v", kept, teams)
	}
	withdrawn, free := h.next(t, at, "sweep", "its admission is taken back", state.withdrawn)
	show(t, withdrawn)
	testcluster.Within(t, 30*time.Second, "the end of the pods that ran", func() bool {
		isOfThem := func(pod corev1.Pod) bool { return started[pod.UID] }
		return !slices.ContainsFunc(podsOf(t, "default", "sweep"), isOfThem)
	})

	h.never(t, 0, free, "urgent", "admitted", state.admitted)
	urgent, at := h.next(t, free, "urgent", "admitted in its place", state.admitted)
	if _, patched := urgent.patch(teamsManager); patched {
		t.Errorf("the patch of sweep is on urgent: %v", urgent)
	}
	_, at = h.next(t, at, "urgent", "complete", state.complete)
	h.never(t, free, at, "sweep", "admitted again", state.admitted)

	again, at := h.next(t, at, "sweep", "admitted again", state.admitted)
	if kept, _ := again.patch(teamsManager); !reflect.DeepEqual(kept, teams) {
		t.Errorf("the owner's patch has changed with the second admission: %v, was %v", kept, teams)
	}
	show(t, again)
	_, _ = h.next(t, at, "sweep", "complete", state.complete)

	if job := (<-low)["sweep"]; job.Outcome != summary.Complete || len(job.Ranks) != 4 {
		t.Errorf("%+v, want 4 ranks that completed", job)
	}
	if job := (<-high)["urgent"]; job.Outcome != summary.Complete || len(job.Ranks) != 2 {
		t.Errorf("%+v, want 2 ranks that completed", job)
	}
	expectFree(t)
	logWorkloads(t)
}

// play submits the TrainJobs of some files and follows them, beside the test; it sends the outcome of each at the end.
func play(t *testing.T, paths ...string) <-chan map[string]summary.Job {
	t.Helper()
	_, submitted := shared.Submit(t, paths...)
	done := make(chan map[string]summary.Job, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		defer close(done)
		ended, err := shared.Follow(ctx, submitted, time.Minute, func(string) {})
		if err != nil {
			t.Error(err)
			return
		}
		done <- ended
	}()
	return done
}

// expectPods waits until all pods of a job run, on nodes of Kueue's flavor, in one clique, as its owner and Kueue
// require, and returns their UIDs.
func expectPods(t *testing.T, job string, count int) map[types.UID]bool {
	t.Helper()
	var pods []corev1.Pod
	testcluster.Within(t, 20*time.Second, fmt.Sprintf("%d running pods of %s", count, job), func() bool {
		pods = slices.DeleteFunc(podsOf(t, "default", job), func(pod corev1.Pod) bool {
			return pod.Status.Phase != corev1.PodRunning
		})
		return len(pods) == count
	})
	racks, who := map[string]bool{}, map[types.UID]bool{}
	for _, pod := range pods {
		rack, _, _ := strings.Cut(pod.Spec.NodeName, "-tray-")
		racks[rack], who[pod.UID] = true, true
		if gangapi.GroupOf(pod.ObjectMeta, pod.Spec) == "" {
			t.Errorf("%s belongs to no gang", pod.Name)
		}
		if pod.Labels["platform.example.com/team"] != "vision" {
			t.Errorf("%s lacks its owner's label: %v", pod.Name, pod.Labels)
		}
		if pod.Labels["kueue.x-k8s.io/podset"] != "node" {
			t.Errorf("%s lacks Kueue's label: %v", pod.Name, pod.Labels)
		}
		if pod.Spec.NodeSelector["nvidia.com/gpu.product"] != "NVIDIA-GB200" {
			t.Errorf("%s lacks the flavor's nodes: %v", pod.Name, pod.Spec.NodeSelector)
		}
		for _, key := range []string{"platform.example.com/preemptible", "nvidia.com/gpu"} {
			if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == key }) {
				t.Errorf("%s does not tolerate %s: %v", pod.Name, key, pod.Spec.Tolerations)
			}
		}
	}
	if len(racks) != 1 {
		t.Errorf("the gang of %s is spread over %v", job, racks)
	}
	return who
}

func podsOf(t *testing.T, namespace, job string) []corev1.Pod {
	t.Helper()
	return shared.PodsOf(t.Context(), t, namespace, job)
}

// expectFree waits until the queue has its whole quota again.
func expectFree(t *testing.T) {
	t.Helper()
	testcluster.Within(t, 20*time.Second, "an empty queue", func() bool {
		queue, err := shared.Dynamic.Resource(queues).Get(t.Context(), "training", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		usage, _, _ := unstructured.NestedSlice(queue.Object, "status", "flavorsUsage")
		for _, flavor := range usage {
			resources, _, _ := unstructured.NestedSlice(flavor.(map[string]any), "resources")
			for _, resource := range resources {
				if resource.(map[string]any)["total"] != "0" {
					return false
				}
			}
		}
		pending, _, _ := unstructured.NestedInt64(queue.Object, "status", "pendingWorkloads")
		reserving, _, _ := unstructured.NestedInt64(queue.Object, "status", "reservingWorkloads")
		return len(usage) == 1 && pending == 0 && reserving == 0
	})
	t.Log("ClusterQueue training: nothing pending, nothing reserved, 0 of 16 GPUs used")
}

// logWorkloads writes the state of Kueue's Workloads.
func logWorkloads(t *testing.T) {
	t.Helper()
	list, err := shared.Dynamic.Resource(workloads).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(item.Object, "status", "conditions")
		for _, entry := range conditions {
			condition := entry.(map[string]any)
			t.Logf("Workload %s: %v=%v (%v) %v", item.GetName(), condition["type"], condition["status"],
				condition["reason"], condition["message"])
		}
	}
}
