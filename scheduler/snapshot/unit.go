package snapshot

import (
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/topology"
)

// Unit runs and leaves together: a whole gang, or a pod that is in none. See Draining and Leftover for those without
// pods.
type Unit struct {
	// Name is namespace/name of the PodGroup, or of the pod with a slash after it; that of a part is PartName.
	Name string
	// Of is the name of an elastic gang that continues without the unit, which is one member of it; empty for any other
	// unit.
	Of string
	// Group is nil for a single pod.
	Group    *schedulingv1beta1.PodGroup
	Priority int32
	// Pods are those with nodes that have not ended, by node and name. Holds are their resources.
	Pods  []*corev1.Pod
	Holds []topology.Held
	// Devices is the number of accelerators of its claims; those that its pods request as resources are not among them.
	Devices int64
	// Domain is the ComputeDomain of a unit without pods, or Claims are its claims; until is its end then.
	Domain types.UID
	Claims []types.UID
	until  time.Time
	// tally sums up the contributions of the pods, nil if that was not done.
	tally *tally
	// whole is the gang that the unit is a part of, nil for one that is not divided.
	whole *Unit
}

// Draining returns a ComputeDomain without users on these nodes. It is taken off them by itself, at about that time;
// until then no other ComputeDomain can be used there. Its departure costs nothing and needs no request.
func Draining(domain types.UID, until time.Time, holds []topology.Held) Unit {
	return Unit{
		Name: "ComputeDomain " + string(domain), Domain: domain, until: until, Holds: holds, Priority: math.MinInt32,
	}
}

// Leftover returns claims whose pods are gone, with the devices that they still have on these nodes. They are given
// back without a request, at about that time.
func Leftover(claims []types.UID, until time.Time, holds []topology.Held) Unit {
	return Unit{
		Name:     "the release of claims whose pods are gone",
		Claims:   claims,
		until:    until,
		Holds:    holds,
		Priority: math.MinInt32,
	}
}

// drains reports whether the unit has no pods and leaves by itself.
func (u Unit) drains() bool { return u.Domain != "" || len(u.Claims) > 0 }

// Units returns all units on the nodes of the view, by name. The slice is the caller's; the holds of the units are not.
func (v View) Units(groups fwk.PodGroupLister) []Unit { return v.running.list(groups, v.resources) }

// single is the unit of a pod that is in no gang, empty yet.
func single(pod *corev1.Pod) Unit {
	return Unit{Name: pod.Namespace + "/" + pod.Name + "/", Priority: corev1helpers.PodPriority(pod)}
}

// Part returns the unit as if it had these of its pods only. Its holds are unchanged.
func (u Unit) Part(pods []*corev1.Pod) Unit {
	u.Pods, u.tally, u.whole = pods, nil, nil
	return u
}

// Leaving reports whether all of the unit is on its way out.
func (u Unit) Leaving() bool { return u.sum().stay == 0 }

// Returns reports whether the unit returns to its nodes at once when it is ended, so that its departure makes no room:
// a pod of a DaemonSet, or one that its kubelet has from a file. A gang does not: its pods wait for their turn again,
// and a tenant may have all of them name a DaemonSet of his own.
//
// The pod itself names its DaemonSet, and a tenant that could do so for any pod would never be preempted. A reference
// with an API group is verified by others: the garbage collector deletes pods of a DaemonSet that does not exist, and
// the DaemonSet controller those that its DaemonSet does not want there. One without a group is never resolved.
func (u Unit) Returns() bool {
	return u.Group == nil && u.all(returns)
}

// all reports whether there are pods, and all have a property.
func (u Unit) all(has func(*corev1.Pod) bool) bool {
	return len(u.Pods) > 0 && !slices.ContainsFunc(u.Pods, func(p *corev1.Pod) bool { return !has(p) })
}

func returns(pod *corev1.Pod) bool {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Kind == "DaemonSet"
}

// Started returns the start of the first of its pods.
func (u Unit) Started() time.Time { return u.sum().started }

// BoundAt returns the time at which a pod got its node. For a pod without that condition only its creation is known.
func BoundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// Saved returns the time of its last checkpoint, as the controller wrote it on the PodGroup; zero if unknown.
func (u Unit) Saved() time.Time {
	if u.Group == nil {
		return time.Time{}
	}
	return LastCheckpoint(u.Group)
}

// LastCheckpoint returns the time at which the trainer of a gang last saved its work, as the controller wrote it; zero
// if unknown.
func LastCheckpoint(group *schedulingv1beta1.PodGroup) time.Time {
	return instant(group.Annotations[topology.AnnotationLastCheckpoint])
}

// Accelerators returns the number of devices of these kinds that the unit holds.
func (u Unit) Accelerators(kinds []corev1.ResourceName) int64 {
	if sum, ok := u.sum().accelerators(kinds); ok {
		return sum + u.Devices
	}
	return Accelerators(u.Pods, kinds) + u.Devices
}

// Accelerators returns the number of devices of these kinds that the pods request, at most 2^52.
func Accelerators(pods []*corev1.Pod, kinds []corev1.ResourceName) int64 {
	var sum int64
	for _, pod := range pods {
		asks := asks(pod)
		for _, kind := range kinds {
			if quantity, ok := asks[kind]; ok {
				sum = min(sum+AmountOf(kind, quantity), mostAmount)
			}
		}
	}
	return sum
}

// instant reads an annotation; zero if it says nothing.
func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// End returns the expected end of the unit; zero if unknown. The deadline of a pod begins when its kubelet starts it,
// which may be long after it was created: until that is reported the end is unknown.
func (u Unit) End() time.Time {
	if len(u.Pods) == 0 {
		return u.until
	}
	if u.Group != nil {
		return ExpectedEnd(u.Group)
	}
	pod := u.Pods[0]
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return u.Started().Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

// Stays reports whether the unit is not meant to end: a pod that returns to its node, or a service, whose pods are
// restarted whenever they end. That holds for the pods of a group (LeaderWorkerSet and the like), too, unless an end of
// it is known: no place is free when a service ends.
func (u Unit) Stays() bool {
	always := u.all(func(p *corev1.Pod) bool { return p.Spec.RestartPolicy == corev1.RestartPolicyAlways })
	if u.Group != nil {
		return always && u.End().IsZero()
	}
	return always || u.Returns()
}

// ExpectedEnd returns the end of a gang, as the controller knows it from its deadline or from its trainer; zero if
// unknown.
func ExpectedEnd(group *schedulingv1beta1.PodGroup) time.Time {
	return instant(group.Annotations[topology.AnnotationExpectedEnd])
}

// EndOf returns when a gang is expected to end, in seconds since 1970; topology.EndUnknown if that is not known.
func EndOf(group *schedulingv1beta1.PodGroup) int64 {
	if end := ExpectedEnd(group); !end.IsZero() {
		return end.Unix()
	}
	return topology.EndUnknown
}
