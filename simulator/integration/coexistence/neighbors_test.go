package coexistence_test

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// gpus is the resource that all neighbors of these tests ask for.
const gpus = corev1.ResourceName("nvidia.com/gpu")

// neighbors creates the pods of a notebook, an inference service, a Deployment and a Spark application on the fleet,
// and waits until the default scheduler has placed them: 1, 2 × 4, 8 and 2 × 8 GPUs.
func neighbors(t *testing.T) {
	t.Helper()
	makeNamespace(t)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { // before the pods, which a StatefulSet creates again
		err := shared.Client.AppsV1().StatefulSets(namespaceOf(t)).
			DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	content, err := os.ReadFile("testdata/neighbors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Objects([]byte(strings.ReplaceAll(string(content), "NAMESPACE", namespaceOf(t))))
	if err != nil {
		t.Fatal(err)
	}
	uids := make(map[string]string)
	for _, object := range objects {
		adopt(t, object, uids)
		made, err := shared.Create(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		uids[object.GetName()] = string(made.GetUID())
	}
	testcluster.Within(t, time.Minute, "the neighbors run", func() bool {
		return running(t, "lab-0") == 1 && running(t, "llm-") == 2 && running(t, "web-") == 1 && running(t, "etl-") == 3
	})
}

// adopt gives an object the UIDs of its owners, which exist.
func adopt(t *testing.T, object *unstructured.Unstructured, uids map[string]string) {
	t.Helper()
	owners := object.GetOwnerReferences()
	for i := range owners {
		uid := uids[owners[i].Name]
		if uid == "" {
			t.Fatalf("%s: its owner %s is not there", object.GetName(), owners[i].Name)
		}
		owners[i].UID = types.UID(uid)
	}
	object.SetOwnerReferences(owners)
}

// onNodes returns the number of GPUs that the pods of each node request, over all namespaces, and fails the test if a
// node has too few.
func onNodes(t *testing.T) map[string]int64 {
	t.Helper()
	all, err := shared.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]int64)
	for _, pod := range all.Items {
		for _, c := range pod.Spec.Containers {
			n := c.Resources.Limits[gpus]
			if used[pod.Spec.NodeName] += n.Value(); pod.Spec.NodeName != "" && used[pod.Spec.NodeName] > 8 {
				t.Errorf("pods of %s ask for %d GPUs, and it has 8", pod.Spec.NodeName, used[pod.Spec.NodeName])
			}
		}
	}
	return used
}

// explained returns the answer of lockstep explain about a gang.
func explained(t *testing.T, gang string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cli.Run(t.Context(), []string{
		"explain", "podgroup", gang, "-n", namespaceOf(t), "--kubeconfig", shared.Kubeconfig(),
	}, cli.Environment{Out: &out, Err: &errs, Clock: clock.RealClock{}})
	return out.String() + errs.String()
}

// waitingOf returns the message of a PodGroup's condition lockstep.dev/Waiting, "" while it does not wait.
func waitingOf(t *testing.T, gang string) string {
	t.Helper()
	group, err := shared.Client.SchedulingV1beta1().
		PodGroups(namespaceOf(t)).
		Get(t.Context(), gang, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range group.Status.Conditions {
		if c.Type == "lockstep.dev/Waiting" && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// told replaces a test's own namespace and instants in the text, so that it is the same each time.
func told(t *testing.T, text string) string {
	t.Helper()
	text = strings.ReplaceAll(text, namespaceOf(t), "team")
	text = regexp.MustCompile(`\d\d:\d\dZ \(in [^)]*\)`).ReplaceAllString(text, "14:10Z (in 10m)")
	text = regexp.MustCompile(`, for [0-9hms]+;`).ReplaceAllString(text, ", for 1s;")
	return strings.TrimSpace(text)
}

// A gang starts on the nodes that the neighbors leave, and no node gets more than it has. One of four nodes waits for
// the Spark executors, whose end is not known, and for no service; a notebook of Lockstep's scheduler starts beside its
// reservation, and the gang when the executors have ended.
func TestNeighbors_GangWaitsForWhatEnds(t *testing.T) {
	neighbors(t)
	gang(t, "small", 1, "")
	testcluster.Within(t, time.Minute, "the small gang", func() bool { return running(t, "small") == 1 })
	onNodes(t)
	gang(t, "large", 4, "")
	testcluster.Within(t, time.Minute, "the large gang has a reservation", func() bool {
		return strings.Contains(waitingOf(t, "large"), "a place is reserved for it")
	})
	answer := explained(t, "large")
	for name, waited := range map[string]bool{"exec-1": true, "exec-2": true, "small": true, "web-": false, "llm-": false, "lab": false} {
		if strings.Contains(answer, name) != waited {
			t.Errorf("explain names %s: %v, want %v:\n%s", name, !waited, waited, answer)
		}
	}
	create(t, notebookOfOurs)
	testcluster.Within(
		t,
		time.Minute,
		"a notebook beside the reservation",
		func() bool { return running(t, "mine-0") == 1 },
	)
	// The other nodes are reserved: services do not end, so that no place includes theirs. Which rack has them depends
	// on the instant at which the StatefulSet's controller creates the first notebook.
	services := slices.Concat(pods(t, "lab-"), pods(t, "llm-"))
	for _, pod := range pods(t, "mine-0") {
		beside := func(service corev1.Pod) bool { return service.Spec.NodeName == pod.Spec.NodeName }
		if !slices.ContainsFunc(services, beside) {
			t.Errorf("the notebook is on %s, which is reserved:\n%s", pod.Spec.NodeName, explained(t, "large"))
		}
	}
	if running(t, "large") > 0 {
		t.Error("some of the large gang runs")
	}
	for _, name := range []string{"etl-7d6e5f403f2a9b8c-exec-1", "etl-7d6e5f403f2a9b8c-exec-2", "small-0"} {
		err := shared.Client.CoreV1().Pods(namespaceOf(t)).Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Within(t, time.Minute, "the large gang", func() bool { return running(t, "large") == 4 })
	onNodes(t)
}

// notebookOfOurs is a notebook that the policy byLockstep, or its owner, has given to Lockstep's scheduler.
const notebookOfOurs = `apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: NAMESPACE, name: mine}
spec:
  replicas: 1
  serviceName: ""
  selector: {matchLabels: {statefulset: mine}}
  template:
    metadata: {labels: {statefulset: mine, notebook-name: mine, app: mine}}
    spec:
      schedulerName: lockstep-scheduler
      terminationGracePeriodSeconds: 0
      containers: [{name: mine, image: example.com/jupyter:1, resources: {limits: {nvidia.com/gpu: 1}}}]
`

// A gang for which services would have to end has no reservation, and explain names them.
func TestNeighbors_ServicesThatHoldAGangUp(t *testing.T) {
	neighbors(t)
	gang(t, "large", 7, "")
	testcluster.Within(t, time.Minute, "the gang waits", func() bool { return waitingOf(t, "large") != "" })
	if text := waitingOf(t, "large"); strings.Contains(text, "reserved") {
		t.Errorf("a place is reserved: %s", text)
	}
	answer := told(t, explained(t, "large"))
	for _, holder := range []string{"web-5c6b7d8f9-h5j6k (8 accel", "llm-predictor-6f8d4c9b7-q9w7z (4 accel", "lab-0 (1 accel"} {
		if !strings.Contains(answer, holder) {
			t.Errorf("explain does not name %s:\n%s", holder, answer)
		}
	}
	if strings.Contains(answer, "etl-") {
		t.Errorf("explain takes Spark for a service:\n%s", answer)
	}
	documented(t, map[string]string{"services": page.Transcript("lockstep explain podgroup large -n team", answer)})
}

// A gang of higher priority evicts the cheapest of lower priority, whatever its kind, and spares pods that a
// PodDisruptionBudget covers. One of equal priority evicts nothing (TestNeighbors_GangWaitsForWhatEnds).
func TestNeighbors_UrgentGangSparesBudgets(t *testing.T) {
	neighbors(t)
	urgent(t)
	create(t, `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: NAMESPACE, name: lab}
spec: {minAvailable: 1, selector: {matchLabels: {notebook-name: lab}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: NAMESPACE, name: llm}
spec: {minAvailable: 2, selector: {matchLabels: {serving.kserve.io/inferenceservice: llm}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: NAMESPACE, name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`)
	testcluster.Within(t, time.Minute, "the budgets are counted", func() bool {
		all, err := shared.Client.PolicyV1().
			PodDisruptionBudgets(namespaceOf(t)).
			List(t.Context(), metav1.ListOptions{})
		return err == nil && len(all.Items) == 3 &&
			!slices.ContainsFunc(all.Items, func(b policyv1.PodDisruptionBudget) bool {
				return b.Status.ObservedGeneration == 0 || b.Status.CurrentHealthy == 0
			})
	})
	gang(t, "urgent", 3, "priorityClassName: urgent")
	testcluster.Within(t, time.Minute, "the urgent gang", func() bool { return running(t, "urgent") == 3 })
	for prefix, want := range map[string]int{"lab-0": 1, "llm-": 2, "web-": 1, "etl-3f2a9b8c7d6e5f40-driver": 1, "etl-7d6e5f403f2a9b8c-exec": 1} {
		if got := running(t, prefix); got != want {
			t.Errorf("%d pods of %s run, want %d", got, prefix, want)
		}
	}
}

// An urgent service takes nodes of a gang of lower priority. Lockstep's scheduler evicts the gang whole; the default
// scheduler takes one member, and the others hold their nodes until the gang's owner starts it again or makes the
// member anew.
func TestNeighbors_UrgentServiceTakesAGangsNode(t *testing.T) {
	urgent(t)
	for scheduler, left := range map[string]int{"lockstep-scheduler": 0, "default-scheduler": 7} {
		t.Run(scheduler, func(t *testing.T) {
			makeNamespace(t)
			gang(t, "whole", 8, "")
			testcluster.Within(t, time.Minute, "the gang", func() bool { return running(t, "whole") == 8 })
			create(t, strings.ReplaceAll(urgentPod, "SCHEDULER", scheduler))
			testcluster.Within(t, time.Minute, "the urgent pod", func() bool { return running(t, "service-0") == 1 })
			testcluster.Within(
				t,
				time.Minute,
				"the members that stay",
				func() bool { return len(pods(t, "whole")) == left },
			)
			if left > 0 {
				testcluster.Within(t, time.Minute, "the words about them", func() bool {
					return strings.Contains(waitingOf(t, "whole"), "1 of the 8 members that it needs are lost")
				})
			}
		})
	}
}

// urgentPod is a pod that asks for a node.
const urgentPod = `apiVersion: v1
kind: Pod
metadata: {namespace: NAMESPACE, name: service-0}
spec:
  schedulerName: SCHEDULER
  priorityClassName: urgent
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example.com/serve:1, resources: {limits: {nvidia.com/gpu: 8}}}]
`
