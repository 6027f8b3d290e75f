package schedulertest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/topology"
)

// RankLabel is the label of a member's rank.
const RankLabel = "batch.kubernetes.io/job-completion-index"

// Gang returns a PodGroup and its members, which request all GPUs of a node each. All members have to start together,
// in one domain of the required level; "" requires no level.
func Gang(name string, size int, required string) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace, UID: types.UID(name),
			Annotations: map[string]string{topology.AnnotationRequiredTopology: required},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)},
		}},
	}
	pods := make([]*corev1.Pod, size)
	for rank := range pods {
		pods[rank] = Pod(fmt.Sprintf("%s-%d", name, rank), "4")
		pods[rank].Labels = map[string]string{RankLabel: strconv.Itoa(rank)}
		pods[rank].Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
	return group, pods
}

// GangWith is Gang, and changes each member.
func GangWith(
	name string, size int, required string, change func(*corev1.Pod),
) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := Gang(name, size, required)
	for _, m := range members {
		change(m)
	}
	return group, members
}

// BoundGang returns a gang whose members are bound, one to each node. It has no status: the scheduler does not know
// since when it runs.
func BoundGang(name string, priority int32, nodes ...string) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := Gang(name, len(nodes), "")
	SetPriority(group, members, priority)
	for i, p := range members {
		p.Spec.NodeName = nodes[i]
	}
	return group, members
}

// RunningGang returns a gang of priority 0 that has run for an hour, one member on each node.
func RunningGang(name, required string, nodes ...string) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := BoundGang(name, 0, nodes...)
	group.Annotations[topology.AnnotationRequiredTopology] = required
	SetRunning(group, members, time.Hour, 0)
	return group, members
}

// Pod returns a pod in no gang.
func Pod(name, gpus string) *corev1.Pod {
	requests := corev1.ResourceList{GPU: resource.MustParse(gpus), corev1.ResourceCPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			Namespace:         Namespace,
			UID:               types.UID(name),
			CreationTimestamp: metav1.Now(),
		},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler.ProfileName,
			Containers: []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}},
			},
		},
	}
}

// ServicePod returns a pod without GPUs that is bound to a node.
func ServicePod(name, node string, labels map[string]string) *corev1.Pod {
	p := Pod(name, "0")
	p.Labels, p.Spec.NodeName = labels, node
	return p
}

// Recreated returns the pod that a Job creates for a lost member: same rank, new name and UID.
func Recreated(lost *corev1.Pod) *corev1.Pod {
	pod := lost.DeepCopy()
	pod.Name += "-again"
	pod.UID, pod.ResourceVersion = types.UID(pod.Name), ""
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	pod.CreationTimestamp = metav1.Now()
	return pod
}

// SetRequest sets the request of a pod for a resource.
func SetRequest(p *corev1.Pod, name corev1.ResourceName, quantity string) {
	p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
	p.Spec.Containers[0].Resources.Limits[name] = resource.MustParse(quantity)
}

// SetPriority sets the priority of a gang.
func SetPriority(group *schedulingv1beta1.PodGroup, members []*corev1.Pod, priority int32) {
	group.Spec.Priority = &priority
	for _, m := range members {
		m.Spec.Priority = &priority
	}
}

// SetQueuedAt sets since when a gang waits, in seconds after a fixed instant in the past.
func SetQueuedAt(group *schedulingv1beta1.PodGroup, second int) {
	at := time.Date(2026, 11, 21, 0, 0, second, 0, time.UTC).Format(time.RFC3339)
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationQueuedAt, at)
}

// SetRunning sets the time for which a gang has run, and the age of its trainer's last checkpoint; 0 for no checkpoint.
func SetRunning(group *schedulingv1beta1.PodGroup, members []*corev1.Pod, ran, saved time.Duration) {
	now := time.Now()
	for _, m := range members {
		started := metav1.NewTime(now.Add(-ran))
		m.Status.Phase, m.Status.StartTime = corev1.PodRunning, &started
	}
	if saved > 0 {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationLastCheckpoint,
			now.Add(-saved).UTC().Format(time.RFC3339))
	}
}

// SetExpectedEnd sets the expected end of a gang, from now, and returns the gang's PodGroup.
func SetExpectedEnd(group *schedulingv1beta1.PodGroup, left time.Duration) *schedulingv1beta1.PodGroup {
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationExpectedEnd,
		time.Now().Add(left).UTC().Format(time.RFC3339))
	return group
}

// AvoidApp returns a change for GangWith: members refuse hosts of pods with a value of the label app. Only the
// framework's filters know that, not the plan.
func AvoidApp(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: appTerms(app, corev1.LabelHostname),
		}}
	}
}

// SeekApp returns a change for GangWith: members require a pod with a value of the label app in their domain of the
// key.
func SeekApp(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: appTerms(app, key),
		}}
	}
}

// appTerms selects pods with a value of the label app.
func appTerms(app, key string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key,
	}}
}

// ElasticGang returns a gang that needs the least members to run, and gives and takes the others.
func ElasticGang(name string, least, most int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := Gang(name, most, "")
	group.Spec.SchedulingPolicy.Gang.MinCount = int32(least)
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationMinNodes, strconv.Itoa(least))
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationMaxNodes, strconv.Itoa(most))
	return group, members
}

// MarkEnded says on a gang's group that its job has ended, as Lockstep's controller does.
func (c *Cluster) MarkEnded(tb testing.TB, gang string) {
	tb.Helper()
	c.MarkOnLoss(tb, gang, topology.OnLossEnded)
}

// MarkOnLoss says on a gang's group how its owner reacts to a loss.
func (c *Cluster) MarkOnLoss(tb testing.TB, gang, onLoss string) {
	tb.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, topology.AnnotationOnLoss, onLoss)
	groups := c.SchedulingV1beta1().PodGroups(Namespace)
	if _, err := groups.Patch(tb.Context(), gang, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		tb.Fatal(err)
	}
}
