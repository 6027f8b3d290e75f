// Package leaving has gangs leave nodes that are to be avoided, when it costs them least: as soon as their trainer has
// saved its work.
//
// An administrator marks such a node with topology.KeyAvoid. It gets nothing new; the ranks that run there are evicted
// once their gang's last checkpoint is later than the mark, and the job's own policy for disruptions starts them
// elsewhere. A gang that reports no checkpoint stays until it ends.
package leaving

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology"
)

// Reason is that of the condition DisruptionTarget of ranks that leave a node.
const Reason = "GangLeavesNode"

// Event is the reason of the Event on the gang.
const Event = "LeavesNode"

// leaver follows the nodes that are to be avoided, and the checkpoints of the gangs of one profile.
type leaver struct {
	client  kubernetes.Interface
	handle  fwk.Handle
	pods    cache.Indexer
	profile string
	acts    func() bool
	timing  timing.Timing

	mu sync.Mutex
	// avoided says since when we know of the mark, by the node's name.
	avoided map[string]time.Time
}

// Watch follows the handle's informers until the context ends, and evicts while acts says that this scheduler decides.
// It must be called before they start.
func Watch(ctx context.Context, handle fwk.Handle, acts func() bool, t timing.Timing) error {
	informers := handle.SharedInformerFactory()
	pods := informers.Core().V1().Pods().Informer()
	if err := members.Index(pods); err != nil {
		return err
	}
	l := &leaver{
		client:  handle.ClientSet(),
		handle:  handle,
		pods:    pods.GetIndexer(),
		profile: handle.ProfileName(),
		acts:    acts,
		timing:  t,
		avoided: make(map[string]time.Time),
	}
	_, err := informers.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    l.node,
		UpdateFunc: func(_, now any) { l.node(now) },
		DeleteFunc: l.nodeGone,
	})
	if err != nil {
		return fmt.Errorf("watching nodes to be avoided: %w", err)
	}
	_, err = informers.Scheduling().V1beta1().PodGroups().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) { l.saved(ctx, old, now) },
	})
	if err != nil {
		return fmt.Errorf("watching checkpoints: %w", err)
	}
	return nil
}

func (l *leaver) node(obj any) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, known := l.avoided[node.Name]; {
	case !nodehealth.Avoided(node):
		delete(l.avoided, node.Name)
	case !known:
		l.avoided[node.Name] = l.timing.Clock.Now()
	}
}

func (l *leaver) nodeGone(obj any) {
	if node, ok := snapshot.ObjectOf[*corev1.Node](obj); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.avoided, node.Name)
	}
}

// saved follows a gang that reports another checkpoint.
func (l *leaver) saved(ctx context.Context, old, now any) {
	before, ok := old.(*schedulingv1beta1.PodGroup)
	group, same := now.(*schedulingv1beta1.PodGroup)
	if !ok || !same || !l.acts() || snapshot.Final(group) {
		return
	}
	last := snapshot.LastCheckpoint(group)
	if !last.After(snapshot.LastCheckpoint(before)) {
		return
	}
	if pods := l.leaving(group, last); len(pods) > 0 {
		l.timing.Beside(func() { l.evict(ctx, group, pods) })
	}
}

// leaving are the ranks of the gang on nodes that were to be avoided when it saved its work.
func (l *leaver) leaving(group *schedulingv1beta1.PodGroup, saved time.Time) []*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.avoided) == 0 {
		return nil
	}
	var out []*corev1.Pod
	for _, pod := range members.Of(l.pods, types.NamespacedName{Namespace: group.Namespace, Name: group.Name}) {
		since, avoided := l.avoided[pod.Spec.NodeName]
		if avoided && saved.After(since) && pod.Spec.SchedulerName == l.profile && pod.DeletionTimestamp == nil &&
			!snapshot.Ended(pod) {
			out = append(out, pod)
		}
	}
	return out
}

func (l *leaver) evict(ctx context.Context, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) {
	mark := eviction.Mark{Now: metav1.NewTime(l.timing.Clock.Now()), Reason: Reason}
	for _, pod := range pods {
		mark.Message = fmt.Sprintf(
			"node %s has the mark %s, and the job has just saved its work",
			pod.Spec.NodeName,
			topology.KeyAvoid,
		)
		if err := eviction.Evict(ctx, l.client, pod, mark); err != nil {
			klog.FromContext(ctx).
				Error(err, "Having a rank leave its node", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
			continue
		}
		l.handle.EventRecorder().Eventf(
			group,
			pod,
			corev1.EventTypeNormal,
			Event,
			"Evicting",
			"rank %s leaves: %s",
			pod.Name,
			mark.Message,
		)
	}
}
