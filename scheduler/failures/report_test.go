package failures_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/failures"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// handle stands for a scheduler's framework.
type handle struct {
	fwk.Handle
	*fake.Clientset

	informers informers.SharedInformerFactory
}

func (h *handle) ClientSet() kubernetes.Interface                        { return h.Clientset }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (*handle) ProfileName() string                                      { return "lockstep-scheduler" }

func rank(i string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "train-" + i, UID: types.UID("uid-" + i),
			Labels: map[string]string{"batch.kubernetes.io/job-completion-index": i},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "lockstep-scheduler", NodeName: "n" + i,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new("train")},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func exits(pod *corev1.Pod, code int32, at time.Time, message string) *corev1.Pod {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "node",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", Message: message, FinishedAt: metav1.NewTime(at),
		}},
	}}
	return pod
}

// The first rank that failed is reported at once, and corrected if an earlier one arrives later. A rank that is deleted
// or evicted did not fail by itself.
func TestReport_NamesTheFirstRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "g"}}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}
		h := &handle{Clientset: fake.NewClientset(group, rank("0"), rank("1"), rank("2"), rank("3"))}
		fakeserver.HonorFields(h.Clientset)
		h.informers = informers.NewSharedInformerFactory(h.Clientset, 0)
		leads := func() bool { return true }
		if err := failures.Report(ctx, h, members.NewEnded(nil), leads, timing.With(clock.RealClock{})); err != nil {
			t.Fatal(err)
		}
		h.informers.Start(ctx.Done())
		h.informers.WaitForCacheSync(ctx.Done())
		synctest.Wait()
		update := func(pod *corev1.Pod) {
			t.Helper()
			if _, err := h.CoreV1().Pods("ns").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect := func(want string) {
			t.Helper()
			got, err := h.SchedulingV1beta1().PodGroups("ns").Get(ctx, "train", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			message := ""
			if c := apimeta.FindStatusCondition(got.Status.Conditions, standing.RankFailed); c != nil {
				message = c.Message
			}
			if message != want {
				t.Fatalf("the group says %q, want %q", message, want)
			}
		}
		now := time.Now()
		evicted := exits(rank("0"), 143, now.Add(-time.Minute), "")
		evicted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		update(evicted)
		deleted := exits(rank("1"), 143, now.Add(-time.Minute), "")
		deleted.DeletionTimestamp = &metav1.Time{Time: now}
		update(deleted)
		expect("")
		update(exits(rank("3"), 1, now.Add(2*time.Second), "NCCL error: peer is gone"))
		expect(
			"rank 3 (pod train-3 on node n3): container node ended with exit code 1 (Error): NCCL error: peer is gone",
		)
		update(exits(rank("2"), 17, now.Add(time.Second), "ValueError: no data"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect("rank 2 (pod train-2 on node n2): container node ended with exit code 17 (Error): ValueError: no data")
	})
}

// At a deadline pods are deleted, and their last words are reported. Pods that are deleted before it, or say nothing,
// are not.
func TestReport_LastWordsAtADeadline(t *testing.T) {
	for name, c := range map[string]struct {
		left    time.Duration
		message string
		want    string
	}{
		"at the deadline": {
			0, "step 12\nwaiting for rank 1",
			"rank 0 (pod train-0 on node n0): container node ended with exit code 143 (Error): step 12\nwaiting for rank 1",
		},
		"before the deadline": {time.Minute, "step 12", ""},
		"without words":       {0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer func() { cancel(); synctest.Wait() }()
				group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns",
					Name:      "train",
					UID:       "g",
					Annotations: map[string]string{
						topology.AnnotationExpectedEnd: time.Now().Add(c.left).Format(time.RFC3339),
					},
				}}
				group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}
				h := &handle{Clientset: fake.NewClientset(group, rank("0"), rank("1"))}
				fakeserver.HonorFields(h.Clientset)
				h.informers = informers.NewSharedInformerFactory(h.Clientset, 0)
				leads := func() bool { return true }
				if err := failures.Report(
					ctx,
					h,
					members.NewEnded(nil),
					leads,
					timing.With(clock.RealClock{}),
				); err != nil {
					t.Fatal(err)
				}
				h.informers.Start(ctx.Done())
				h.informers.WaitForCacheSync(ctx.Done())
				synctest.Wait()
				for _, i := range []string{"1", "0"} {
					pod := exits(rank(i), 143, time.Now(), c.message)
					pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
					if _, err := h.CoreV1().Pods("ns").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				got, err := h.SchedulingV1beta1().PodGroups("ns").Get(ctx, "train", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				message := ""
				if condition := apimeta.FindStatusCondition(
					got.Status.Conditions,
					standing.RankFailed,
				); condition != nil {
					message = condition.Message
				}
				if message != c.want {
					t.Errorf("the group says %q, want %q", message, c.want)
				}
			})
		})
	}
}

func TestFirst(t *testing.T) {
	now := time.Unix(1000, 0)
	refused := rank("5")
	refused.Status = corev1.PodStatus{
		Phase:   corev1.PodFailed,
		Reason:  "OutOfcpu",
		Message: "Node didn't have enough resource: cpu",
	}
	long := strings.Repeat("x", 500) + "\n" + strings.Repeat("y", 500) + "\nthe last line"
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"the lower rank of the same second": {
			[]*corev1.Pod{exits(rank("3"), 1, now, ""), exits(rank("2"), 2, now, "")},
			"rank 2 (pod train-2 on node n2): container node ended with exit code 2 (Error)",
		},
		"a kubelet's refusal": {
			[]*corev1.Pod{refused}, "rank 5 (pod train-5 on node n5): failed (OutOfcpu): Node didn't have enough resource: cpu",
		},
		"whole lines of a long log": {
			[]*corev1.Pod{exits(rank("1"), 1, now, long)},
			"rank 1 (pod train-1 on node n1): container node ended with exit code 1 (Error): " + strings.Repeat("y", 500) + "\nthe last line",
		},
	} {
		if got, _ := failures.First(c.pods); got.String() != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
