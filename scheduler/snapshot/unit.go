package snapshot

import (
	"math"
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

// Unit is what runs, and leaves, together: a whole gang, or a pod that is in none. See Draining for one without pods.
type Unit struct {
	// Name is namespace/name of the PodGroup, or of the pod with a slash after it; that of a part is PartName.
	Name string
	// Of is the name of an elastic gang that goes on without the unit, which is one member of it; empty for any other unit.
	Of string
	// Group is nil for a single pod.
	Group    *schedulingv1beta1.PodGroup
	Priority int32
	// Pods are those with nodes that have not ended, by node and name. Holds is what they take.
	Pods  []*corev1.Pod
	Holds []topology.Held
	// Devices is how many accelerators its claims have; those that its pods ask for as resources are not among them.
	Devices int64
	// Domain is the ComputeDomain of a unit without pods, until its end then.
	Domain types.UID
	until  time.Time
	// tally sums up what the pods say, nil if that was not done.
	tally *tally
	// whole is the gang of which the unit is a part, nil for one that is not divided.
	whole *Unit
}

// Draining is a ComputeDomain that nobody uses on these nodes any more. It is taken off them by itself, at about that time; until
// then nobody else can use it there. Its departure costs nothing, and nobody has to ask for it.
func Draining(domain types.UID, until time.Time, holds []topology.Held) Unit {
	return Unit{
		Name: "ComputeDomain " + string(domain), Domain: domain, until: until, Holds: holds, Priority: math.MinInt32,
	}
}

// Units returns all that runs on the nodes of the view, by name. The slice is the caller's; what the units hold is not.
func (v View) Units(groups fwk.PodGroupLister) []Unit { return v.running.list(groups, v.resources) }

// single is the unit of a pod that is in no gang, empty yet.
func single(pod *corev1.Pod) Unit {
	return Unit{Name: pod.Namespace + "/" + pod.Name + "/", Priority: corev1helpers.PodPriority(pod)}
}

// Part is the unit as if it had these of its pods only. What they hold is as before.
func (u Unit) Part(pods []*corev1.Pod) Unit {
	u.Pods, u.tally, u.whole = pods, nil, nil
	return u
}

// Leaving reports whether all of the unit is on its way out.
func (u Unit) Leaving() bool { return u.sum().stay == 0 }

// Returns reports whether the unit is a pod that comes back to its node at once when it is ended: that of a DaemonSet, or one
// that its kubelet has from a file. Its departure makes no room.
//
// That it is a DaemonSet's, the pod itself says, and a tenant who could say so of any pod would never be preempted. With its
// group the claim is held to be true by others: the garbage collector deletes pods of a DaemonSet that does not exist, and
// the DaemonSet controller those that its DaemonSet does not want there. A reference without it, nobody resolves.
func (u Unit) Returns() bool {
	if len(u.Pods) == 0 {
		return false
	}
	if _, static := u.Pods[0].Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	owner := metav1.GetControllerOf(u.Pods[0])
	return owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Kind == "DaemonSet"
}

// Started is when the first of its pods started.
func (u Unit) Started() time.Time { return u.sum().started }

// BoundAt is when a pod got its node. Nothing but its creation is known of a pod that does not say.
func BoundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// Saved is when its trainer last saved its work, as the controller wrote it on the PodGroup; zero if nobody knows.
func (u Unit) Saved() time.Time {
	if u.Group == nil {
		return time.Time{}
	}
	return LastCheckpoint(u.Group)
}

// LastCheckpoint is when the trainer of a gang last saved its work, as the controller wrote it; zero if nobody knows.
func LastCheckpoint(group *schedulingv1beta1.PodGroup) time.Time {
	return instant(group.Annotations[topology.AnnotationLastCheckpoint])
}

// Accelerators is how many devices of these kinds the unit holds.
func (u Unit) Accelerators(kinds []corev1.ResourceName) int64 {
	if sum, ok := u.sum().accelerators(kinds); ok {
		return sum + u.Devices
	}
	return Accelerators(u.Pods, kinds) + u.Devices
}

// Accelerators is how many devices of these kinds the pods ask for.
func Accelerators(pods []*corev1.Pod, kinds []corev1.ResourceName) int64 {
	var sum int64
	for _, pod := range pods {
		asks := asks(pod)
		for _, kind := range kinds {
			if quantity, ok := asks[kind]; ok {
				sum += quantity.Value()
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

// End is when the unit is expected to end; zero if nobody knows. The deadline of a pod begins when its kubelet starts it, which
// may be long after it was created: until that is told nobody knows.
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

// Stays reports whether the unit is not meant to end: a pod that comes back to its node, or a service, whose pods are restarted whenever
// they end. That holds for the pods of a group (LeaderWorkerSet and the like), too, unless an end of it is known: no place is free
// when a service ends.
func (u Unit) Stays() bool {
	if len(u.Pods) == 0 {
		return false
	}
	always := u.Pods[0].Spec.RestartPolicy == corev1.RestartPolicyAlways
	if u.Group != nil {
		return always && u.End().IsZero()
	}
	return always || u.Returns()
}

// ExpectedEnd is when a gang ends, as the controller knows it from its deadline or from its trainer; zero if nobody knows.
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
