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
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Deleted is the reason of the condition DisruptionTarget of a rank that was deleted from its Job.
const Deleted = "DeletedFromJob"

// marker marks deleted ranks of the gangs of one profile.
type marker struct {
	client  kubernetes.Interface
	profile string
	acts    func() bool
	timing  timing.Timing

	mu sync.Mutex
	// asked are the Jobs that are being asked about, by a pod of theirs.
	asked map[types.UID]bool
}

// MarkDeleted gives ranks that are deleted the condition DisruptionTarget, until the context ends, while acts says that this scheduler decides: Jobs have
// no other way to tell a rank that was deleted (by kubectl, by an agent that watches the health of nodes) from one that failed. Ranks that a Job deletes
// itself, because it is suspended, deleted or has ended, get none.
func MarkDeleted(ctx context.Context, handle fwk.Handle, acts func() bool, t timing.Timing) error {
	m := &marker{
		client:  handle.ClientSet(),
		profile: handle.ProfileName(),
		acts:    acts,
		timing:  t,
		asked:   make(map[types.UID]bool),
	}
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(
		cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, now any) { m.changed(ctx, old, now) }},
	); err != nil {
		return fmt.Errorf("watching pods that are deleted: %w", err)
	}
	return nil
}

// changed looks at a rank whose deletion has begun. While one rank of a Job is looked at, the others need not be: one that is marked is enough.
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
	if m.asked[owner.UID] {
		return
	}
	m.asked[owner.UID] = true
	m.timing.Beside(func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.asked, owner.UID)
		}()
		m.mark(ctx, pod, owner)
	})
}

// mark marks a rank if its Job did not delete it. A Job that cannot be read is taken to have done so.
func (m *marker) mark(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) {
	job, err := m.client.BatchV1().Jobs(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil || job.UID != owner.UID || !GoesOn(job) {
		return
	}
	mark := eviction.Mark{
		Now: metav1.NewTime(
			m.timing.Clock.Now(),
		),
		Reason:  Deleted,
		Message: "the rank was deleted while its Job goes on",
	}
	if err := eviction.MarkPod(ctx, m.client, pod, mark); err != nil {
		klog.FromContext(ctx).Error(err, "Marking a deleted rank", "pod", klog.KObj(pod))
	}
}

// GoesOn reports whether a Job wants all its pods: it deletes none of them.
func GoesOn(job *batchv1.Job) bool {
	if job.DeletionTimestamp != nil || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return false
	}
	ends := []batchv1.JobConditionType{
		batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet,
	}
	return !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && slices.Contains(ends, c.Type)
	})
}
