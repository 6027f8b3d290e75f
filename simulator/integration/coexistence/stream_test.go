package coexistence_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// stream returns Jobs whose pods of 8 GPUs run for some seconds each, one after another, and use all eight nodes.
func stream(scheduler string) string {
	var jobs []string
	for i, pods := range []int{3, 3, 2} {
		jobs = append(jobs, fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {namespace: NAMESPACE, name: stream-%d}
spec:
  parallelism: %d
  completions: 1000
  completionMode: NonIndexed
  podFailurePolicy:
    rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]
  template:
    metadata: {annotations: {simulator.lockstep.dev/run-time: %ds}}
    spec:
      schedulerName: %s
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: example.com/serve:1, resources: {limits: {nvidia.com/gpu: 8}}}]
`, i, pods, 5+2*i, scheduler))
	}
	return strings.Join(jobs, "---\n")
}

// swell has sixty pods of the stream at a time: all but eight wait for a node.
func swell(t *testing.T) {
	t.Helper()
	for i := range 3 {
		_, err := shared.Client.BatchV1().Jobs(namespaceOf(t)).Patch(t.Context(), fmt.Sprintf("stream-%d", i),
			types.MergePatchType, []byte(`{"spec": {"parallelism": 20}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// patience is the time for which a gang is watched that waits beside a stream. Without the stream it starts within 9 s,
// when the last pod has ended.
const patience = 60 * time.Second

// outcome is the result of a gang beside a stream.
type outcome struct {
	// wait is the time that the gang waited; patience for one that did not start.
	wait time.Duration
	// evicted is the number of the stream's evicted pods.
	evicted int
}

// beside has a gang of four of the eight nodes wait, before the later pods of a scheduler's stream.
func beside(t *testing.T, scheduler, class string) outcome {
	t.Helper()
	if !exists(t) {
		makeNamespace(t)
	}
	create(t, stream(scheduler))
	testcluster.Within(t, time.Minute, "the nodes are full", func() bool { return running(t, "stream") == 8 })
	began, evicted := time.Now(), map[types.UID]bool{}
	classed := ""
	if class != "" {
		classed = "priorityClassName: " + class
	}
	gang(t, "large", 4, classed)
	swell(t)
	for time.Since(began) < patience && running(t, "large") < 4 {
		for _, pod := range pods(t, "stream") {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.DisruptionTarget {
					evicted[pod.UID] = true
				}
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return outcome{time.Since(began).Round(time.Second), len(evicted)}
}

// A gang of four of eight nodes waits beside a stream of single pods that all want a node: of Lockstep, which reserves
// the freed nodes for the gang; of the default scheduler, which does not see the reservation; and of the default
// scheduler with the policy that gives such pods to Lockstep.
func TestStream_GangBesideSinglePods(t *testing.T) {
	if !*long {
		t.Skip("takes two and a half minutes; -args -long runs it")
	}
	urgent(t)
	rows := []string{
		fmt.Sprintf("%-29s  %-20s  %18s  %12s", "pods of", "gang's priority", "started after", "pods evicted"),
	}
	seen := map[string]outcome{}
	for _, c := range []struct{ name, scheduler, class string }{
		{"lockstep", "lockstep-scheduler", ""},
		{"default", "default-scheduler", ""},
		{"policy", "default-scheduler", ""},
		{"lockstep-urgent", "lockstep-scheduler", "urgent"},
		{"default-urgent", "default-scheduler", "urgent"},
		{"policy-urgent", "default-scheduler", "urgent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			label := c.scheduler
			if strings.HasPrefix(c.name, "policy") {
				label += ", byLockstep"
				enforceByLockstep(t)
			}
			seen[c.name] = beside(t, c.scheduler, c.class)
			rows = append(rows, row(label, c.class, seen[c.name]))
		})
	}
	if *kubernetes < "1.36" {
		return
	}
	if seen["default"].wait < patience {
		t.Errorf("the gang started beside the default scheduler's pods: docs/neighbors.md says that it does not")
	}
	for _, name := range []string{"lockstep", "policy", "lockstep-urgent", "policy-urgent"} {
		if seen[name].wait > patience/2 || seen[name].evicted > 4 {
			t.Errorf("%s: %+v", name, seen[name])
		}
	}
	if *write { // other seconds at each run
		documented(t, map[string]string{"stream": strings.Join(rows, "\n")})
	}
}

func row(label, class string, seen outcome) string {
	wait, priority := seen.wait.String(), "higher"
	if seen.wait >= patience {
		wait = "never (" + patience.String() + ")"
	}
	if class == "" {
		priority = "equal"
	}
	return fmt.Sprintf("%-29s  %-20s  %18s  %12d", label, priority, wait, seen.evicted)
}

// urgent creates a PriorityClass, until the test ends.
func urgent(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1_001_000}
	if _, err := shared.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Client.SchedulingV1().
			PriorityClasses().
			Delete(ctx, class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
