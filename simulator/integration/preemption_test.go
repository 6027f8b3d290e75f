package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// withPriority is a runtime like torch-distributed, of a priority.
func withPriority(name, class string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: %s, namespace: NAMESPACE}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                priorityClassName: %s
                terminationGracePeriodSeconds: 1
                containers: [{name: node, image: example.com/torch:1}]
`, name, class)
}

// A full cluster, and a gang of higher priority: one gang is preempted, whole, the other starts in its place, and the
// preempted one starts again when it can. The others notice nothing, and no job fails.
func TestPreemption_EvictsOneWholeGang(t *testing.T) {
	namespace := namespaceOf(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important-training"}, Value: 1_001_000}
	if _, err := shared.Client.SchedulingV1().
		PriorityClasses().
		Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	job := func(name, runtime, runTime string) string {
		return strings.ReplaceAll(gang(name, 18, runTime), "runtimeRef: {name: torch-distributed}",
			"runtimeRef: {kind: TrainingRuntime, name: "+runtime+"}")
	}
	texts := []string{withPriority("ordinary", `""`)}
	for i := range 4 {
		texts = append(texts, job(fmt.Sprint("low-", i), "ordinary", "1h"))
	}
	submit(t, strings.Join(texts, "---\n"))
	before := map[string][]corev1.Pod{}
	for i := range 4 {
		name := fmt.Sprint("low-", i)
		before[name] = newRunners(t, namespace, name, 18, nil)
	}
	submitMore(t, withPriority("important", class.Name)+"---\n"+job("high", "important", "10m"))
	high := newRunners(t, namespace, "high", 18, nil)
	var left []string
	for name, pods := range before {
		here := podsOf(t.Context(), t, namespace, name)
		stayed := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
			return !slices.ContainsFunc(
				here,
				func(h corev1.Pod) bool { return h.UID == p.UID && h.DeletionTimestamp == nil },
			)
		})
		switch len(stayed) {
		case 0:
			left = append(left, name)
		case 18:
		default:
			t.Errorf("%s lost %d of 18 members: it was not preempted whole", name, 18-len(stayed))
		}
	}
	if len(left) != 1 {
		t.Fatalf("%v left for a gang that needs one clique", left)
	}
	tellsOfItsPreemption(t, namespace, left[0])
	shared.Succeed(t, high)
	newRunners(t, namespace, left[0], 18, before[left[0]])
	testcluster.Within(t, 60*time.Second, "the end of high", func() bool {
		return slices.Contains(conditionsOf(t.Context(), t, namespace, "high"), "Complete")
	})
	for name := range before {
		if held := conditionsOf(t.Context(), t, namespace, name); slices.Contains(held, "Failed") {
			t.Errorf("%s failed", name)
		}
	}
	restarts, counted := number(
		t,
		namespace,
		left[0],
		"restarts",
	), number(
		t,
		namespace,
		left[0],
		"restartsCountTowardsMax",
	)
	if restarts < 1 || counted != 0 {
		t.Errorf("%s was started again %d times, %d of them counted", left[0], restarts, counted)
	}
	t.Logf("%s left for the important gang, and started again after it", left[0])
}
