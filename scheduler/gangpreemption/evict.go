package gangpreemption

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// cause is the reason for which units leave: for their owners, and for the conditions of their pods and groups.
type cause struct {
	// reason is that of the condition, event and action are those of the Event; all are CamelCase words.
	reason, event, action string
	// message is a sentence for users of the namespace of by, others one without the name of by for all other users.
	message, others string
	by              preemptor
}

// preemptor is a PodGroup, or a pod in no gang.
type preemptor interface {
	runtime.Object
	klog.KMetadata
}

// preempted is the cause of units that leave for a gang, or for a pod.
func preempted(x *waiting.Question) cause {
	what, by := "gang", preemptor(x.Group)
	if x.Group == nil {
		what, by = "pod", x.Waiting[0]
	}
	return cause{
		reason: corev1.PodReasonPreemptionByScheduler, event: "Preempted", action: "Preempting", by: by,
		message: "preempted by " + what + " " + klog.KObj(by).String() + ", which has a higher priority",
		others:  "preempted by a " + what + " of another namespace, which has a higher priority",
	}
}

// to returns the reason in the words for a namespace.
func (c cause) to(namespace string) string {
	if c.others == "" || namespace == c.by.GetNamespace() {
		return c.message
	}
	return c.others
}

// shrinks is the same cause of a member that its gang can do without.
func (c cause) shrinks() cause {
	c.event, c.action = "Shrunk", "Shrinking"
	c.message = "gives a member that it can do without: " + c.message
	if c.others != "" {
		c.others = "gives a member that it can do without: " + c.others
	}
	return c
}

// record writes an Event with the reason for the departure of a unit to its owner.
func (c cause) record(recorder events.EventRecorder, u snapshot.Unit) {
	if u.Group == nil {
		c.recordAbout(recorder, u.Pods[0], u.Pods[0].Namespace)
		return
	}
	c.recordAbout(recorder, u.Group, u.Group.Namespace)
}

func (c cause) recordAbout(recorder events.EventRecorder, about runtime.Object, namespace string) {
	var related runtime.Object
	if namespace == c.by.GetNamespace() {
		related = c.by
	}
	recorder.Eventf(about, related, corev1.EventTypeNormal, c.event, c.action, "%s", c.to(namespace))
}

// An eviction that failed is tried again after a pause that doubles, six times within half a minute.
const (
	firstPause = 500 * time.Millisecond
	tries      = 7
)

// insist does something until it succeeds, or has failed as often as is worth it, and returns the last error.
func (p *GangPreemption) insist(ctx context.Context, do func() error) error {
	for try, wait := 1, firstPause; ; try, wait = try+1, 2*wait {
		err := do()
		if err == nil || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-p.clock.After(wait):
		}
	}
}

// evict removes the units without holding up the scheduling loop, except for pods whose eviction is under way already.
// An eviction that fails in the end is tried again when the gang is evaluated next: the units are still there then, and
// the gang is still first in line for their room.
func (p *GangPreemption) evict(leave []snapshot.Unit, why cause) {
	var pods []*corev1.Pod
	for _, u := range leave {
		if u.Leaving() {
			continue
		}
		switch whole := slices.ContainsFunc(leave, func(other snapshot.Unit) bool { return other.Name == u.Of }); {
		case p.underway.holds(u) || u.Of != "" && whole: // reported already, or with its gang
		case u.Of != "":
			why.shrinks().record(p.handle.EventRecorder(), u)
		default:
			why.record(p.handle.EventRecorder(), u)
			p.mark(u.Group, why)
		}
		for _, pod := range u.Pods {
			if !eviction.Leaves(pod) && p.underway.begin(pod.UID, p.underway.clock.Now()) {
				pods = append(pods, pod)
			}
		}
	}
	if len(pods) == 0 {
		return
	}
	p.later(len(pods), func(ctx context.Context, i int) {
		defer func() { p.underway.end(pods[i].UID, p.underway.clock.Now()) }()
		if err := p.insist(ctx, func() error { return p.evictPod(ctx, pods[i], why) }); err != nil {
			klog.FromContext(ctx).Error(err, "Evicting a pod", "pod", klog.KObj(pods[i]), "reason", why.reason,
				"by", klog.KObj(why.by))
		}
	})
}

// mark says on the group of a unit that it leaves, beside the loop. A failure is logged: the pods leave all the same.
func (p *GangPreemption) mark(group *schedulingv1beta1.PodGroup, why cause) {
	if group == nil {
		return
	}
	mark := eviction.Mark{
		Now: metav1.NewTime(p.underway.clock.Now()), Reason: why.reason, Message: why.to(group.Namespace),
	}
	p.later(1, func(ctx context.Context, _ int) {
		if err := eviction.MarkGroup(ctx, p.handle.ClientSet(), group, mark); err != nil {
			klog.FromContext(ctx).
				Error(err, "Failed to write on the PodGroup why its gang leaves", "podGroup", klog.KObj(group))
		}
	})
}

// evictPod writes to the pod the deadline for saving its work, and then ends it.
func (p *GangPreemption) evictPod(ctx context.Context, pod *corev1.Pod, why cause) error {
	now := p.underway.clock.Now()
	err := eviction.Evict(ctx, p.handle.ClientSet(), pod, eviction.Mark{
		Now: metav1.NewTime(now), Reason: why.reason, Message: why.to(pod.Namespace),
		Annotations: map[string]string{
			topology.AnnotationCheckpointDeadline: now.Add(eviction.Grace(pod)).UTC().Format(time.RFC3339),
		},
	})
	if err != nil {
		return fmt.Errorf("evicting: %w", err)
	}
	return nil
}
