package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/topology"
)

var jobSets = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}

// newRunners waits until so many pods of a job run, none of them one of those before, and returns them by rank.
func newRunners(t *testing.T, namespace, job string, ranks int, before []corev1.Pod) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	testcluster.Within(t, 60*time.Second, fmt.Sprintf("running pods of %s", job), func() bool {
		pods = slices.DeleteFunc(podsOf(t.Context(), t, namespace, job), func(pod corev1.Pod) bool {
			old := slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == pod.UID })
			return old || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
		})
		return len(pods) == ranks
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return rankOf(a) - rankOf(b) })
	return pods
}

func rankOf(pod corev1.Pod) int {
	var rank int
	_, _ = fmt.Sscan(pod.Labels["batch.kubernetes.io/job-completion-index"], &rank)
	return rank
}

// evict removes pods as the scheduler does, with its account. Of a gang, the Job's controller may have removed some by
// then. The condition says since when it holds: the disruption controller takes back one that has held for two minutes
// without a deletion, and so one without a time at once; the Job's controller then sees an ordinary failure, and makes
// that pod again instead of starting the gang anew.
func evict(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for i := range pods {
		err := eviction.Evict(t.Context(), asScheduler(t), &pods[i], eviction.Mark{
			Now: metav1.Now(), Reason: corev1.PodReasonPreemptionByScheduler, Message: "preempted by a test",
			Annotations: map[string]string{topology.AnnotationCheckpointDeadline: deadline},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// asScheduler returns a client with the rights of the scheduler's account.
func asScheduler(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := gangapi.Client(as("system:serviceaccount:lockstep-system:lockstep-scheduler"), offered().API())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// deadline is the announced end of the time that evicted pods have.
const deadline = "2026-11-23T12:00:00Z"

// The API server takes the deadline of a victim with its status, from an account that may not patch pods.
func TestPreemption_VictimHasDeadline(t *testing.T) {
	makeNamespace(t, namespaceOf(t))
	pods := shared.Client.CoreV1().Pods(namespaceOf(t))
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "victim", Finalizers: []string{"lockstep.dev/test"}, Annotations: map[string]string{"mine": "stays"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "node", Image: "none"}}, SchedulerName: "nobody"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	evict(t, []corev1.Pod{*pod})
	got, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	marked := slices.ContainsFunc(got.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
	told := got.Annotations[topology.AnnotationCheckpointDeadline]
	if got.DeletionTimestamp == nil || !marked || told != deadline || got.Annotations["mine"] != "stays" {
		t.Errorf(
			"deleted at %v, conditions %v, annotations %v",
			got.DeletionTimestamp,
			got.Status.Conditions,
			got.Annotations,
		)
	}
	free := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := pods.Patch(t.Context(), pod.Name, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	_, err = asScheduler(t).CoreV1().Pods(namespaceOf(t)).
		Patch(t.Context(), pod.Name, types.MergePatchType, free, metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the scheduler's account patches pods: %v", err)
	}
}

// number reads a number of a JobSet's status; 0 where there is none.
func number(t *testing.T, namespace, job, field string) int64 {
	t.Helper()
	var jobSet *unstructured.Unstructured
	testcluster.Ask(t, func() (err error) {
		jobSet, err = shared.Dynamic.Resource(jobSets).Namespace(namespace).Get(t.Context(), job, metav1.GetOptions{})
		return err
	})
	value, _, err := unstructured.NestedInt64(jobSet.Object, "status", field)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// conditionsOf are the types of a TrainJob's conditions that hold.
func conditionsOf(ctx context.Context, t *testing.T, namespace, name string) []string {
	t.Helper()
	var job *unstructured.Unstructured
	testcluster.Ask(t, func() (err error) {
		job, err = shared.Dynamic.Resource(trainJobs).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	var held []string
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["status"] == "True" {
			held = append(held, fmt.Sprint(fields["type"]))
		}
	}
	return held
}

// The eviction of any member restarts the whole gang: a training continues with all its ranks or not at all.
func TestEvict_OneMemberRestartsTheGang(t *testing.T) {
	namespace, name := namespaceOf(t), "one"
	submit(t, gang(name, 4, "10m"))
	before := newRunners(t, namespace, name, 4, nil)
	for _, rank := range []int{1, 3, 0} {
		evict(t, before[rank:rank+1])
		before = append(newRunners(t, namespace, name, 4, before), before...)
	}
	if restarts := number(t, namespace, name, "restarts"); restarts != 3 {
		t.Errorf("the JobSet restarted %d times for three evictions", restarts)
	}
}

// A gang that is preempted has done nothing wrong, however often: it starts again and completes.
func TestPreemption_GangStartsAgain(t *testing.T) {
	const members = 64
	namespace, name := namespaceOf(t), "preempted"
	submit(t, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: preempted
  namespace: NAMESPACE
  annotations: {simulator.lockstep.dev/run-time: 10m}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`, members))
	var before []corev1.Pod
	for time := range 2 {
		pods := newRunners(t, namespace, name, members, before)
		if held := conditionsOf(t.Context(), t, namespace, name); len(held) > 0 {
			t.Fatalf("the job is %v after %d preemptions", held, time)
		}
		before = append(before, pods...)
		evict(t, pods)
	}
	shared.Succeed(t, newRunners(t, namespace, name, members, before))
	testcluster.Within(t, 90*time.Second, "the job's end", func() bool {
		held := conditionsOf(t.Context(), t, namespace, name)
		if slices.Contains(held, "Failed") {
			t.Fatalf("the job failed")
		}
		return slices.Contains(held, "Complete")
	})
	restarts, counted := number(t, namespace, name, "restarts"), number(t, namespace, name, "restartsCountTowardsMax")
	t.Logf(
		"%d members evicted twice: the JobSet was started again %d times, %d of them counted",
		members,
		restarts,
		counted,
	)
	if restarts < 2 || counted != 0 {
		t.Errorf("%d restarts, %d counted, want at least 2 and none", restarts, counted)
	}
}

// A job that can continue with the others gets the lost member back, with its rank, near them. The Job's controller
// waits ten seconds before it replaces a pod.
func TestOnDisruption_ReplacesLostMember(t *testing.T) {
	const members, lost = 16, 5
	namespace, name := namespaceOf(t), "replaced"
	submit(t, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: replaced
  namespace: NAMESPACE
  annotations:
    lockstep.dev/on-disruption: replace
    lockstep.dev/preferred-topology: nvidia.com/gpu.clique
    simulator.lockstep.dev/run-time: 10m
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`, members))
	pods := newRunners(t, namespace, name, members, nil)
	evict(t, pods[lost:lost+1])
	testcluster.Within(t, 30*time.Second, "the member's return", func() bool {
		now := podsOf(t.Context(), t, namespace, name)
		return slices.ContainsFunc(now, func(pod corev1.Pod) bool {
			return rankOf(pod) == lost && pod.UID != pods[lost].UID && pod.Spec.NodeName != ""
		})
	})
	now := newRunners(t, namespace, name, members, pods[lost:lost+1])
	cliques := map[string]bool{}
	for rank, pod := range now {
		if rank != lost && pod.UID != pods[rank].UID {
			t.Errorf("rank %d was replaced too", rank)
		}
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cliques[node.Labels["nvidia.com/gpu.clique"]] = true
	}
	if len(cliques) != 1 || rankOf(now[lost]) != lost {
		t.Errorf("rank %d came back as %d; the gang is in cliques %v", lost, rankOf(now[lost]), cliques)
	}
	if restarts := number(t, namespace, name, "restarts"); restarts != 0 {
		t.Errorf("the JobSet was started again %d times", restarts)
	}
	shared.Succeed(t, now)
	testcluster.Within(t, 60*time.Second, "the job's completion", func() bool {
		return slices.Equal(conditionsOf(t.Context(), t, namespace, name), []string{"Complete"})
	})
}
