package frameworks_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// seen is a user's view, by the SDK, of a job that has ended.
type seen struct {
	Name, Status string
	Seconds      float64
	Steps        map[string]struct{ Status, Pod, Log string }
	Events       []string
}

// log is the output of all steps.
func (s seen) log() string {
	var all strings.Builder
	for _, step := range s.Steps {
		all.WriteString(step.Log + "\n")
	}
	return all.String()
}

// lastWords logs the output of failed pods of a job, before they are deleted, until ctx ends.
func lastWords(ctx context.Context, t *testing.T, job string) {
	t.Helper()
	pods, told := shared.Client.CoreV1().Pods("default"), map[types.UID]bool{}
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job})
		if err != nil {
			continue
		}
		for _, pod := range list.Items {
			if pod.Status.Phase != corev1.PodFailed || told[pod.UID] {
				continue
			}
			words, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
			if told[pod.UID] = true; err == nil {
				t.Logf("%s failed:\n%s", pod.Name, words)
			}
		}
	}
}

// play runs a scenario of programs/play.py in the userland, with a job of its name. Its result is the transcript.
func play(t *testing.T, scenario string) seen {
	t.Helper()
	return playAs(t, scenario, scenario)
}

// playAs does so with a job of another name.
func playAs(t *testing.T, scenario, name string) seen {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() { lastWords(ctx, t, name) })
	defer listening.Wait()
	defer stop()
	command := userland.Command(t.Context(), "python", "/tmp/programs/play.py", scenario, name)
	command.Env = append(
		command.Env,
		"KUBECONFIG=/tmp/kubeconfig/"+filepath.Base(shared.Kubeconfig()),
		"CHECKPOINTS="+checkpoints,
	)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("playing %s: %v", scenario, err)
	}
	var job seen
	if err := json.Unmarshal(out, &job); err != nil {
		t.Fatalf("%s prints %s: %v", scenario, out, err)
	}
	t.Logf("%s: %s after %.1f s", job.Name, job.Status, job.Seconds)
	for name, step := range job.Steps {
		t.Logf("%s (%s, %s):\n%s", name, step.Pod, step.Status, step.Log)
	}
	for _, event := range job.Events {
		t.Log(event)
	}
	return job
}

// begin plays a scenario beside the test.
func begin(t *testing.T, scenario string) <-chan seen {
	t.Helper()
	ended := make(chan seen, 1)
	go func() {
		defer close(ended)
		ended <- play(t, scenario)
	}()
	return ended
}

// complete plays a scenario that has to complete, with lines that its output has to have.
func complete(t *testing.T, scenario string, lines ...string) seen {
	t.Helper()
	return completed(t, play(t, scenario), lines...)
}

// completed checks that a job has completed, with lines that its output has to have.
func completed(t *testing.T, job seen, lines ...string) seen {
	t.Helper()
	if job.Status != "Complete" {
		t.Errorf("%s is %s", job.Name, job.Status)
	}
	log := job.log()
	for _, line := range lines {
		if !strings.Contains(log, line) {
			t.Errorf("%s does not print %q", job.Name, line)
		}
	}
	if !t.Failed() {
		record(t.Name(), strings.Join(lines, "; "), job.Seconds)
	}
	return job
}

// statusOf is a part of the status of a TrainJob; nil if there is none.
func statusOf(t *testing.T, job string, path ...string) map[string]any {
	t.Helper()
	trainJobs := schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	object, err := shared.Dynamic.Resource(trainJobs).Namespace("default").Get(t.Context(), job, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	part, _, err := unstructured.NestedMap(object.Object, append([]string{"status"}, path...)...)
	if err != nil {
		t.Fatal(err)
	}
	return part
}
