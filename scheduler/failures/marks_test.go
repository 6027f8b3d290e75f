package failures_test

import (
	"strings"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/failures"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// Ranks end for reasons that a Job cannot see. The table lists the conditions that show them, of two ranks that end in
// the same way.
func TestMark(t *testing.T) {
	deleted := func(pod *corev1.Pod) {
		now := metav1.Now()
		pod.DeletionTimestamp, pod.Finalizers = &now, []string{"tracking"}
	}
	suspend := func(job *batchv1.Job) { job.Spec.Suspend = new(true) }
	refused := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, reason }
	}
	crashed := func(pod *corev1.Pod) { exits(pod, 1, metav1.Now().Time, "") }
	asItIs := func(*batchv1.Job) {}
	for name, test := range map[string]struct {
		happens func(*corev1.Pod)
		job     func(*batchv1.Job)
		want    string
	}{
		"deleted":                 {deleted, asItIs, "DisruptionTarget/DeletedFromJob"}, // one is enough, both may be
		"suspended":               {deleted, suspend, ""},
		"suspended, a fatal code": {deleted, func(job *batchv1.Job) { suspend(job); ignoreTaken(job) }, "lockstep.dev/TakenAway/JobIsSuspended twice"},
		"the Job is deleted": {deleted, func(job *batchv1.Job) {
			now := metav1.Now()
			job.DeletionTimestamp, job.Finalizers = &now, []string{"foregroundDeletion"}
			ignoreTaken(job)
		}, ""},
		"the Job has failed": {deleted, func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
			ignoreTaken(job)
		}, ""},
		"refused":            {refused("OutOfnvidia.com/gpu"), asItIs, "DisruptionTarget/RefusedByKubelet twice"},
		"its deadline ended": {refused("DeadlineExceeded"), asItIs, ""},
		"crashed":            {crashed, asItIs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "j"}}
				test.job(job)
				ranks := []*corev1.Pod{ofJob(rank("0"), job), ofJob(rank("1"), job)}
				h := &handle{Clientset: fake.NewClientset(job, ranks[0], ranks[1])}
				fakeserver.HonorFields(h.Clientset)
				h.informers = informers.NewSharedInformerFactory(h.Clientset, 0)
				ctx := t.Context()
				if err := failures.Mark(
					ctx,
					h,
					members.NewEnded(nil),
					func() bool { return true },
					timing.With(clock.RealClock{}),
				); err != nil {
					t.Fatal(err)
				}
				h.informers.Start(ctx.Done())
				h.informers.WaitForCacheSync(ctx.Done())
				synctest.Wait()
				for _, pod := range ranks {
					pod = pod.DeepCopy()
					test.happens(pod)
					if err := h.Tracker().
						Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ns"); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if got := h.conditions(t); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
					t.Errorf("the ranks have %q, want %q", got, test.want)
				}
			})
		})
	}
}

// ignoreTaken gives a Job the rule that the controller renders where some exit codes are fatal.
func ignoreTaken(job *batchv1.Job) {
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: standing.TakenAway, Status: corev1.ConditionTrue},
			},
		},
	}}
}

func ofJob(pod *corev1.Pod, job *batchv1.Job) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	return pod
}

// conditions are the condition and its reason of the ranks that have one.
func (h *handle) conditions(t *testing.T) string {
	t.Helper()
	pods, err := h.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			all = append(all, string(c.Type)+"/"+c.Reason)
		}
	}
	if len(all) == 2 && all[0] == all[1] {
		return all[0] + " twice"
	}
	return strings.Join(all, ", ")
}
