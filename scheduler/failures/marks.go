package failures

import (
	"context"
	"fmt"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// The reasons of the conditions that ranks get.
const (
	// Deleted is that of DisruptionTarget on a rank that was deleted from its Job.
	Deleted = "DeletedFromJob"
	// Refused is that of DisruptionTarget on a rank that a kubelet refused.
	Refused = "RefusedByKubelet"
	// Suspended is that of standing.TakenAway.
	Suspended = "JobIsSuspended"
)

// marker marks ranks of the gangs of one profile.
type marker struct {
	client  kubernetes.Interface
	profile string
	acts    func() bool
	timing  timing.Timing

	mu sync.Mutex
	// asked are the Jobs that are being evaluated, with their ranks whose deletion has begun.
	asked map[types.UID][]*corev1.Pod
}

// Mark gives ranks conditions that show Jobs why they ended, until the context ends, while acts reports that this
// scheduler decides. Ranks that are deleted while their Job continues (by kubectl, by an agent that watches the health
// of nodes), and those that a kubelet refused, get DisruptionTarget. Ranks that their Job deletes because it is
// suspended get standing.TakenAway, if a rule of the Job's asks for it. Ranks that a Job deletes because it is deleted
// or has ended get nothing.
func Mark(ctx context.Context, handle fwk.Handle, ended *members.Ended, acts func() bool, t timing.Timing) error {
	m := &marker{
		client: handle.ClientSet(), profile: handle.ProfileName(), acts: acts, timing: t,
		asked: make(map[types.UID][]*corev1.Pod),
	}
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(
		cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, now any) { m.changed(ctx, old, now) }},
	); err != nil {
		return fmt.Errorf("watching pods that are deleted: %w", err)
	}
	if err := ended.Follow(ctx, handle, func(pod *corev1.Pod) { m.ended(ctx, pod) }); err != nil {
		return fmt.Errorf("following refused ranks: %w", err)
	}
	return nil
}

// deadlineExceeded is the reason of a pod that exceeded its own deadline, which is its job's doing.
const deadlineExceeded = "DeadlineExceeded"

// ended marks a rank that failed before any of its containers ran.
func (m *marker) ended(ctx context.Context, pod *corev1.Pod) {
	_, member := snapshot.GroupOf(pod)
	failed := pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != deadlineExceeded &&
		pod.DeletionTimestamp == nil
	if !member || !failed || eviction.Disrupted(pod) || begun(pod) || !m.acts() {
		return
	}
	m.timing.Beside(func() {
		m.mark(ctx, pod, corev1.DisruptionTarget, Refused, "the kubelet refused the rank: "+pod.Status.Message)
	})
}

// begun reports whether a container of the pod has run.
func begun(pod *corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if status.State.Terminated != nil || status.State.Running != nil || status.RestartCount > 0 {
				return true
			}
		}
	}
	return false
}

// changed looks at a rank whose deletion has begun. A Job is evaluated once for all ranks that it loses meanwhile.
func (m *marker) changed(ctx context.Context, old, obj any) {
	before, ok := old.(*corev1.Pod)
	pod, same := obj.(*corev1.Pod)
	if !ok || !same || before.DeletionTimestamp != nil || pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" ||
		pod.Spec.SchedulerName != m.profile || snapshot.Ended(pod) || eviction.Disrupted(pod) || !m.acts() {
		return
	}
	owner := metav1.GetControllerOf(pod)
	if _, member := snapshot.GroupOf(pod); !member || owner == nil || owner.Kind != "Job" ||
		owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked[owner.UID]
	m.asked[owner.UID] = append(asked, pod)
	if len(asked) == 0 {
		m.timing.Beside(func() { m.ask(ctx, pod.Namespace, owner) })
	}
}

// ask finds out why a Job loses ranks, and marks them. Of those that others deleted one mark is enough. A Job that
// cannot be read is taken to have deleted them for good.
func (m *marker) ask(ctx context.Context, namespace string, owner *metav1.OwnerReference) {
	job, err := m.client.BatchV1().Jobs(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	m.mu.Lock()
	ranks := m.asked[owner.UID]
	delete(m.asked, owner.UID)
	m.mu.Unlock()
	switch {
	case err != nil || job.UID != owner.UID || job.DeletionTimestamp != nil:
	case goesOn(job):
		m.mark(ctx, ranks[0], corev1.DisruptionTarget, Deleted, "the rank was deleted while its Job goes on")
	case isSuspended(job) && ignoresTaken(job):
		for _, rank := range ranks {
			m.timing.Beside(func() { m.mark(ctx, rank, standing.TakenAway, Suspended, "the Job was suspended") })
		}
	}
}

// ignoresTaken reports whether a Job has a rule for ranks that it takes away itself: then it has rules for exit codes
// too.
func ignoresTaken(job *batchv1.Job) bool {
	return job.Spec.PodFailurePolicy != nil &&
		slices.ContainsFunc(job.Spec.PodFailurePolicy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
			return slices.ContainsFunc(
				rule.OnPodConditions,
				func(of batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
					return of.Type == standing.TakenAway
				},
			)
		})
}

func (m *marker) mark(
	ctx context.Context,
	rank *corev1.Pod,
	condition corev1.PodConditionType,
	reason, message string,
) {
	mark := eviction.Mark{Now: metav1.NewTime(m.timing.Clock.Now()), Reason: reason, Message: message}
	if err := eviction.MarkPodAs(ctx, m.client, rank, condition, mark); err != nil {
		klog.FromContext(ctx).Error(err, "Marking a rank", "pod", klog.KObj(rank), "condition", condition)
	}
}

// goesOn reports whether a Job wants all its pods: it deletes none of them.
func goesOn(job *batchv1.Job) bool {
	if job.DeletionTimestamp != nil || isSuspended(job) {
		return false
	}
	ends := []batchv1.JobConditionType{
		batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet,
	}
	return !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && slices.Contains(ends, c.Type)
	})
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }
