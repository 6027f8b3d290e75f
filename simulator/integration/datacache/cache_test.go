package datacache_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The shipped sample with another table and smaller sizes: the cache is up before the first rank, each rank reads its
// own share of the table, and with the TrainJob all that the initializer created is deleted.
func TestCache_EachRankReadsItsShare(t *testing.T) {
	sets.start(t)
	const job = "torch-streamed"
	eventLog := follow(t, job)
	submit(t, sample(t, job, gpusPerNode, small()))
	within(t, 5*time.Minute, "the end of "+job, func() bool {
		eventLog.look()
		now := statusOf(t, job)
		if now.is("Failed") {
			t.Fatalf("it is %+v", now)
		}
		return now.is("Complete")
	})
	said := words(t, job, "node")
	t.Logf("the ranks print:\n%s", said)
	for rank := range 4 {
		expect(t, said, fmt.Sprintf(
			`rank %d of 4 read 250 rows from grpc://torch-streamed-cache-0-[12]\.torch-streamed-cache\.default:50051`,
			rank,
		))
		expect(t, said, fmt.Sprintf(`rank %d fitted y = 3\.00 x \+ 1\.00`, rank))
	}
	expect(t, said, `all ranks read 1000 rows, 1000 different, from 0 to 999`)
	initializer := words(t, job, "dataset-initializer")
	t.Logf("the initializer prints:\n%s", initializer)
	expect(t, initializer, `LeaderWorkerSet torch-streamed-cache is ready`)
	eventLog.ranksAfterCache(t)

	cache := step(t, job, "cache")
	if len(cache) != 3 {
		t.Errorf("the cache of a job that is complete has %d pods, want a head and two workers", len(cache))
	}
	for _, pod := range cache {
		if pod.Spec.SchedulerName != corev1.DefaultSchedulerName || pod.Spec.SchedulingGroup != nil {
			t.Errorf("%s is for %s, in group %v", pod.Name, pod.Spec.SchedulerName, pod.Spec.SchedulingGroup)
		}
	}
	eventLog.note("TrainJob " + job + " is deleted")
	if err := shared.Dynamic.Resource(trainJobs).
		Namespace(namespace).
		Delete(t.Context(), job, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Minute, "the end of its objects", func() bool { return len(left(t.Context(), t, job)) == 0 })
	eventLog.note("LeaderWorkerSet, ServiceAccount, Service and pods are gone")
	t.Logf("what happened:\n%s", eventLog.text())
	record(t, eventLog, said)
}

// expect fails the test unless a pattern is in a text.
func expect(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("%q is not in:\n%s", pattern, strings.TrimSpace(text))
	}
}
