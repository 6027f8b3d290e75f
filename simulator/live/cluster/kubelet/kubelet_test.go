package kubelet_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/kubelet"
)

var started = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

const said = "simulated: rank 3 of node in job vision/bert on node rack-1-tray-04, container node: no program was started\n"

func TestKubelet_LogsSayThatNoProgramRuns(t *testing.T) {
	server, _ := serve(
		t,
		pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}}),
	)
	for query, want := range map[string]string{
		"":                                   said,
		"tailLines=0":                        "",
		"tailLines=5":                        said,
		"limitBytes=10":                      said[:10],
		"timestamps=true":                    "2026-11-27T08:00:00Z " + said,
		"sinceSeconds=30":                    "",
		"sinceSeconds=90":                    said,
		"sinceTime=2026-11-27T08%3A00%3A01Z": "",
	} {
		if code, got := get(
			t,
			server,
			"containerLogs/vision/bert-node-0-3/node?"+query,
		); code != http.StatusOK ||
			got != want {
			t.Errorf("?%s: %d %q, want %q", query, code, got, want)
		}
	}
}

func TestKubelet_LogsOfContainersThatHaveNone(t *testing.T) {
	waiting := pod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}})
	server, _ := serve(t, waiting)
	for path, want := range map[string]int{
		"containerLogs/vision/bert-node-0-3/node":                   http.StatusBadRequest,
		"containerLogs/vision/bert-node-0-3/sidecar":                http.StatusBadRequest,
		"containerLogs/vision/bert-node-0-3/node?previous=true":     http.StatusBadRequest,
		"containerLogs/vision/bert-node-0-3/node?sinceSeconds=many": http.StatusBadRequest,
		"containerLogs/vision/other/node":                           http.StatusNotFound,
		"exec/vision/bert-node-0-3/node":                            http.StatusNotImplemented,
	} {
		if code, got := get(t, server, path); code != want || got == "" {
			t.Errorf("%s: %d %q, want %d and why", path, code, got, want)
		}
	}
}

// A client that follows the log of a pod learns when it ends, as it would from a kubelet.
func TestKubelet_FollowsUntilThePodEnds(t *testing.T) {
	running := pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}})
	for name, end := range map[string]func(client *fake.Clientset) error{
		"deleted": func(client *fake.Clientset) error {
			return client.CoreV1().Pods("vision").Delete(t.Context(), running.Name, metav1.DeleteOptions{})
		},
		"completed": func(client *fake.Clientset) error {
			_, err := client.CoreV1().Pods("vision").Update(t.Context(), over(running), metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := serve(t, running)
			log := follow(t, server)
			line := make([]byte, len(said))
			if _, err := io.ReadFull(log, line); err != nil || string(line) != said {
				t.Fatalf("%q, %v, want the line while the pod runs", line, err)
			}
			if err := end(client); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(log); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v after the pod ended, want the end of the log", rest, err)
			}
		})
	}
}

func TestKubelet_FollowsAnEndedPodToItsEnd(t *testing.T) {
	server, _ := serve(t, over(pod(corev1.ContainerState{})))
	if text, err := io.ReadAll(follow(t, server)); err != nil || string(text) != said {
		t.Errorf("%q, %v, want the line and the end", text, err)
	}
}

func pod(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "vision", Name: "bert-node-0-3", UID: "1",
			Labels: map[string]string{
				"jobset.sigs.k8s.io/jobset-name": "bert", "jobset.sigs.k8s.io/replicatedjob-name": "node",
			},
			Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "3"},
		},
		Spec: corev1.PodSpec{NodeName: "rack-1-tray-04"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "node", State: state}},
		},
	}
}

func over(running *corev1.Pod) *corev1.Pod {
	ended := running.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	ended.Status.ContainerStatuses[0].State = corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(started)},
	}
	return ended
}

func serve(t *testing.T, of *corev1.Pod) (*httptest.Server, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(of)
	server := httptest.NewServer(kubelet.New(client, clocktesting.NewFakePassiveClock(started.Add(time.Minute))))
	t.Cleanup(server.Close)
	return server, client
}

func follow(t *testing.T, server *httptest.Server) io.Reader {
	t.Helper()
	_, body := ask(t, server, "containerLogs/vision/bert-node-0-3/node?follow=true")
	return body
}

func get(t *testing.T, server *httptest.Server, path string) (code int, text string) {
	t.Helper()
	code, body := ask(t, server, path)
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(content)
}

func ask(t *testing.T, server *httptest.Server, path string) (code int, body io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}
