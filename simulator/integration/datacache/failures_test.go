package datacache_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Where the kind LeaderWorkerSet is not served, Kubeflow's initializer prints so and ends without an error. The ranks
// start, and none finds the cache's Service. An Event on the TrainJob says why.
func TestCache_WithoutLeaderWorkerSet(t *testing.T) {
	sets.remove(t)
	const job = "without-sets"
	submit(t, sample(t, job, 1, small()))
	within(t, 2*time.Minute, "the end of the initializer", func() bool { return len(initialized(t, job)) > 0 })
	said := words(t, job, "dataset-initializer")
	t.Logf("the initializer prints:\n%s", said)
	expect(t, said, `Cache cluster creation failed: \(404\)`)
	expect(t, said, `Error cleaning up ServiceAccount: \(403\)`)
	within(t, 2*time.Minute, "a rank that does not find its cache", func() bool {
		return strings.Contains(words(t, job, "node"), "FlightUnavailableError")
	})
	t.Logf("status: %+v", statusOf(t, job))
	expect(
		t,
		strings.Join(events(t, job), "\n"),
		"LeaderWorkerSet of leaderworkerset.x-k8s.io/v1 is not served by this cluster",
	)
}

// Kubeflow's initializer treats the role as required, and exits with an error. An Event on the TrainJob names the
// missing variable.
func TestCache_WithoutARole(t *testing.T) {
	sets.start(t)
	const job = "without-role"
	variables := small()
	variables["IAM_ROLE"] = ""
	submit(t, sample(t, job, 1, variables))
	within(t, time.Minute, "the error of the initializer", func() bool {
		return strings.Contains(
			words(t, job, "dataset-initializer"),
			"missing 1 required positional argument: 'iam_role'",
		)
	})
	expect(
		t,
		strings.Join(events(t, job), "\n"),
		"without IAM_ROLE Kubeflow's initializer of a cache exits with an error",
	)
}

// Without the initializer's account there is no pod, and the TrainJob and its Job's Events say so.
func TestCache_WithoutItsAccount(t *testing.T) {
	sets.start(t)
	const job, name = "without-account", "kubeflow-trainer-cache-initializer"
	accounts := shared.Client.CoreV1().ServiceAccounts(namespace)
	if err := accounts.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := accounts.Create(context.WithoutCancel(t.Context()), account, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	submit(t, sample(t, job, 1, small()))
	within(t, time.Minute, "its status says so", func() bool {
		return strings.HasPrefix(statusOf(t, job).Scheduling.Reason, "no pod of dataset-initializer is created")
	})
	within(t, time.Minute, "an Event of its Job says so", func() bool {
		list, err := shared.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job + "-dataset-initializer-0",
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(event corev1.Event) bool {
			return strings.Contains(event.Message, `serviceaccount "`+name+`" not found`)
		})
	})
}

// events returns the messages of a TrainJob's Events.
func events(t *testing.T, job string) []string {
	t.Helper()
	list, err := shared.Client.CoreV1().Events(namespace).
		List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=TrainJob,involvedObject.name=" + job})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, event := range list.Items {
		said = append(said, event.Reason+": "+event.Message)
	}
	return said
}

// A cache whose table is missing never becomes ready. Its initializer waits, no rank starts, the TrainJob reports the
// cause of its wait, and fails at its deadline.
func TestCache_NeverReady(t *testing.T) {
	sets.start(t)
	const job, deadline = "never-ready", 40
	variables := small()
	variables["METADATA_LOC"] = "file:///tmp/warehouse/absent.metadata.json"
	object := sample(t, job, 1, variables)
	if err := unstructured.SetNestedField(object.Object, int64(deadline), "spec", "activeDeadlineSeconds"); err != nil {
		t.Fatal(err)
	}
	eventLog := follow(t, job)
	submit(t, object)
	var waiting status
	within(t, 2*time.Minute, "the end of "+job, func() bool {
		eventLog.look()
		now := statusOf(t, job)
		if !now.is("Failed") {
			waiting = now
		}
		return now.is("Failed")
	})
	t.Logf("what happened:\n%s", eventLog.text())
	if waiting.Scheduling.Phase != "Starting" || !strings.Contains(waiting.Scheduling.Reason, "dataset-initializer") {
		t.Errorf("its status before its deadline was %+v", waiting)
	}
	if now := statusOf(t, job); !strings.Contains(now.Conditions[len(now.Conditions)-1].Reason, "DeadlineExceeded") {
		t.Errorf("its status is %+v", now)
	}
	if ranks := step(t, job, "node"); len(ranks) > 0 {
		t.Errorf("it has %d ranks", len(ranks))
	}
	// The cache belongs to the TrainJob, and stays until that is deleted.
	if _, err := shared.Dynamic.Resource(setsOf).
		Namespace(namespace).
		Get(t.Context(), job+"-cache", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// An initializer that is evicted while the cache starts is run again. It finds its own LeaderWorkerSet, treats that as
// a failure and exits successfully. Because its role deletes nothing, the cache retains its account and becomes ready.
func TestCache_InitializerStartsTwice(t *testing.T) {
	sets.start(t)
	const job = "twice"
	eventLog := follow(t, job)
	submit(t, sample(t, job, 1, small()))
	restart(t, job, eventLog.look)
	eventLog.note("the initializer's pod is deleted")
	within(t, 5*time.Minute, "the end of "+job, func() bool {
		eventLog.look()
		now := statusOf(t, job)
		return now.is("Complete") || now.is("Failed")
	})
	said := words(t, job, "dataset-initializer")
	t.Logf(
		"the initializer prints:\n%s\nwhat happened:\n%s\n%+v\nthe ranks print:\n%s",
		said,
		eventLog.text(),
		statusOf(t, job),
		words(t, job, "node"),
	)
	expect(t, said, `Cache cluster creation failed: \(409\)`)
	expect(t, said, `Error cleaning up ServiceAccount: \(403\)`)
	if _, err := shared.Client.CoreV1().
		ServiceAccounts(namespace).
		Get(t.Context(), job+"-cache", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
