package gangpreemption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// cause is why units leave: for their owners, and for the conditions of their pods.
type cause struct {
	// reason is that of the condition, event and action are those of the Event; all are CamelCase words.
	reason, event, action string
	// message is a sentence for people.
	message string
	by      *schedulingv1beta1.PodGroup
}

// patience is how an eviction is tried again that failed: six times within half a minute.
func patience() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 7}
}

// evict removes the units without holding up the scheduling loop, but for pods whose eviction goes on already. What fails in the end
// is tried again when the gang is asked about next: they are still there then, and it is still first in line for their room.
func (p *GangPreemption) evict(leave []snapshot.Unit, why cause) {
	var pods []*corev1.Pod
	for _, u := range leave {
		if u.Leaving() {
			continue
		}
		if !p.underway.holds(u) {
			var about runtime.Object = u.Pods[0]
			if u.Group != nil {
				about = u.Group
			}
			p.handle.EventRecorder().
				Eventf(about, why.by, corev1.EventTypeNormal, why.event, why.action, "%s", why.message)
		}
		for _, pod := range u.Pods {
			if pod.DeletionTimestamp == nil && p.underway.begin(pod.UID, p.underway.clock.Now()) {
				pods = append(pods, pod)
			}
		}
	}
	if len(pods) == 0 {
		return
	}
	p.later(len(pods), func(ctx context.Context, i int) {
		defer func() { p.underway.end(pods[i].UID, p.underway.clock.Now()) }()
		always := func(error) bool { return ctx.Err() == nil }
		if err := retry.OnError(patience(), always, func() error { return p.evictPod(ctx, pods[i], why) }); err != nil {
			klog.FromContext(ctx).Error(err, "Evicting a pod", "pod", klog.KObj(pods[i]), "reason", why.reason,
				"gang", klog.KObj(why.by))
		}
	})
}

// evictPod tells the pod until when it has time to save its work, and then ends it.
func (p *GangPreemption) evictPod(ctx context.Context, pod *corev1.Pod, why cause) error {
	now := p.underway.clock.Now()
	grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = time.Duration(*own) * time.Second
	}
	err := eviction.Evict(ctx, p.handle.ClientSet(), pod, eviction.Mark{
		Now: metav1.NewTime(now), Reason: why.reason, Message: why.message,
		Annotations: map[string]string{
			topology.AnnotationCheckpointDeadline: now.Add(grace).UTC().Format(time.RFC3339),
		},
	})
	if err != nil {
		return fmt.Errorf("evicting: %w", err)
	}
	return nil
}
