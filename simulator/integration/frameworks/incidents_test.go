package frameworks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ranks waits until all ranks of a job run that were not there before, and returns them in their order.
func ranks(t *testing.T, job string, count int, before ...corev1.Pod) []corev1.Pod {
	t.Helper()
	var running []corev1.Pod
	eventually(t, fmt.Sprintf("%d ranks of %s", count, job), func() bool {
		running = slices.DeleteFunc(podsOf(t, job), func(pod corev1.Pod) bool {
			old := slices.ContainsFunc(before, func(was corev1.Pod) bool { return was.UID == pod.UID })
			return old || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
		})
		return len(running) == count
	})
	slices.SortFunc(running, func(a, b corev1.Pod) int {
		const rank = "batch.kubernetes.io/job-completion-index"
		return strings.Compare(a.Labels[rank], b.Labels[rank])
	})
	return running
}

func podsOf(t *testing.T, job string) []corev1.Pod {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods("default").
		List(t.Context(), metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	within(t, 90*time.Second, what, is)
}

func within(t *testing.T, patience time.Duration, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	for end := began.Add(patience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, time.Since(began))
		}
	}
	t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
}

// together checks that ranks were started at one time.
func together(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	var first, last time.Time
	for _, pod := range pods {
		started := pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time
		if first.IsZero() || started.Before(first) {
			first = started
		}
		if started.After(last) {
			last = started
		}
	}
	t.Logf("the ranks start %v apart", last.Sub(first))
	if last.Sub(first) > 5*time.Second {
		t.Errorf("the ranks start %v apart", last.Sub(first))
	}
}

// An evicted rank takes the other with it; both have time to save, and resume together where they were.
func TestIncident_Eviction(t *testing.T) {
	ended := begin(t, "evicted")
	before := ranks(t, "evicted", 2)
	time.Sleep(2 * time.Second)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: before[1].Name, Namespace: "default"}}
	if err := shared.Client.CoreV1().Pods("default").EvictV1(t.Context(), eviction); err != nil {
		t.Fatal(err)
	}
	together(t, ranks(t, "evicted", 2, before...))
	resumed(t, <-ended, 40)
}

// A deleted rank is a disruption, too.
func TestIncident_DeletedPod(t *testing.T) {
	ended := begin(t, "deleted")
	before := ranks(t, "deleted", 2)
	time.Sleep(2 * time.Second)
	if err := shared.Client.CoreV1().
		Pods("default").
		Delete(t.Context(), before[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	together(t, ranks(t, "deleted", 2, before...))
	resumed(t, <-ended, 40)
}

// resumed checks that both ranks of a job completed from a checkpoint on.
func resumed(t *testing.T, job seen, steps int) {
	t.Helper()
	completed(t, job, fmt.Sprintf("rank 0 ends at step %d", steps), fmt.Sprintf("rank 1 ends at step %d", steps))
	if strings.Contains(job.log(), "begins at step 0") {
		t.Errorf("%s began anew", job.Name)
	}
}

// A rank that exits takes the other with it. Both retain their places while another job wants one, and the TrainJob
// names the rank, its code and its last words.
func TestIncident_ExitCode(t *testing.T) {
	ended := begin(t, "crashed")
	before := ranks(t, "crashed", 2)
	thief := begin(t, "thief")
	together(t, ranks(t, "crashed", 2, before...))
	for _, pod := range podsOf(t, "thief") {
		if pod.Spec.NodeName != "" {
			t.Errorf("the job that waits is on %s", pod.Spec.NodeName)
		}
	}
	completed(t, <-ended, "rank 0 ends", "rank 1 ends")
	completed(t, <-thief)
	failure := failureOf(t, "crashed")
	message, _ := failure["message"].(string)
	if failure["rank"] != int64(1) || failure["exitCode"] != int64(7) ||
		!strings.Contains(message, "ValueError: no data") {
		t.Errorf("the TrainJob says that %v failed", failure)
	}
}

// failureOf is status.scheduling.lastFailure of a TrainJob.
func failureOf(t *testing.T, job string) map[string]any {
	t.Helper()
	return statusOf(t, job, "scheduling", "lastFailure")
}

// makeUrgent makes the PriorityClass of jobs that evict whatever that loses.
func makeUrgent(t *testing.T) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1_001_000}
	_, err := shared.Client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// A gang that is preempted by one of higher priority saves its steps on SIGTERM, and resumes from them when the other
// has ended.
func TestIncident_PreemptionWithACheckpoint(t *testing.T) {
	makeUrgent(t)
	ended := begin(t, "preempted")
	ranks(t, "preempted", 2)
	time.Sleep(3 * time.Second)
	completed(t, <-begin(t, "urgent"), "rank 0 ends", "rank 1 ends")
	resumed(t, <-ended, 80)
}
