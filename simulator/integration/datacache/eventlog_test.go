package datacache_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// eventLog records the observations of a job, each once, with the time of the first.
type eventLog struct {
	t     *testing.T
	job   string
	began time.Time
	lines []seen
	// pods are the pods of each title, in the order in which they were seen.
	pods map[string][]types.UID
}

// seen is one line of an event log: an observation, so many seconds after the log began.
type seen struct {
	seconds float64
	what    string
}

func follow(t *testing.T, job string) *eventLog {
	t.Helper()
	return &eventLog{t: t, job: job, began: time.Now(), pods: map[string][]types.UID{}}
}

// note adds a thing unless it was seen before.
func (s *eventLog) note(what string) {
	if !slices.ContainsFunc(s.lines, func(line seen) bool { return line.what == what }) {
		s.lines = append(s.lines, seen{time.Since(s.began).Seconds(), what})
	}
}

// look notes the present objects.
func (s *eventLog) look() {
	s.t.Helper()
	core := shared.Client.CoreV1()
	if _, err := core.ServiceAccounts(namespace).Get(s.t.Context(), s.job+"-cache", metav1.GetOptions{}); err == nil {
		s.note("the initializer has created ServiceAccount " + s.job + "-cache")
	}
	set, err := shared.Dynamic.Resource(setsOf).
		Namespace(namespace).
		Get(s.t.Context(), s.job+"-cache", metav1.GetOptions{})
	if err == nil {
		s.note("the initializer has created LeaderWorkerSet " + s.job + "-cache")
		if available(set) {
			s.note("LeaderWorkerSet " + s.job + "-cache is Available")
		}
	}
	service := s.job + "-cache-service"
	if _, err := core.Services(namespace).Get(s.t.Context(), service, metav1.GetOptions{}); err == nil {
		s.note("the initializer has created Service " + service)
	}
	for _, pod := range podsOf(s.t.Context(), s.t, s.job) {
		title := s.title(pod)
		if pod.Spec.NodeName != "" {
			s.note(fmt.Sprintf("%s is bound by %s", title, pod.Spec.SchedulerName))
		}
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			s.note(title + " has ended")
		case corev1.PodFailed:
			s.note(title + " has failed")
		case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		}
	}
	now := statusOf(s.t, s.job).Scheduling
	if now.Phase != "" {
		s.note(strings.TrimSuffix("status.scheduling: "+now.Phase+", "+now.Reason, ", "))
	}
}

// title is a pod's name without the part that Jobs make up, with its number if another one was there before.
func (s *eventLog) title(pod corev1.Pod) string {
	title := "pod " + pod.Name
	if stepOf(pod) != "cache" {
		title = title[:strings.LastIndex(title, "-")]
	}
	if !slices.Contains(s.pods[title], pod.UID) {
		s.pods[title] = append(s.pods[title], pod.UID)
	}
	if at := slices.Index(s.pods[title], pod.UID); at > 0 {
		return fmt.Sprintf("%s (again, %d)", title, at+1)
	}
	return title
}

func available(set *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(of any) bool {
		condition, _ := of.(map[string]any)
		return condition["type"] == "Available" && condition["status"] == "True"
	})
}

// ranksAfterCache checks that no rank was bound before the cache was there.
func (s *eventLog) ranksAfterCache(t *testing.T) {
	t.Helper()
	position := func(part string) int {
		return slices.IndexFunc(s.lines, func(line seen) bool { return strings.Contains(line.what, part) })
	}
	cache, rank := position("is Available"), position("-node-0-")
	if cache < 0 || rank < cache {
		t.Errorf("the cache is available in line %d, a rank is seen in line %d of:\n%s", cache, rank, s.text())
	}
}

// text are the lines in their order.
func (s *eventLog) text() string {
	var all strings.Builder
	for _, line := range s.lines {
		fmt.Fprintf(&all, "%5.1f s  %s\n", line.seconds, line.what)
	}
	return all.String()
}
