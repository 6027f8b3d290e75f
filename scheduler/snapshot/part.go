package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/topology"
)

// IsElastic reports whether the gang of a group goes on with fewer members than all, and takes more when it runs. Its job says so by
// lockstep.dev/min-nodes. Of other groups with a minCount below their size, only the start is known to do with fewer.
func IsElastic(group *schedulingv1beta1.PodGroup) bool {
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return false
	}
	_, ok := topology.SpanOf(group.Annotations)
	return ok
}

// PartName is the name of the unit of a member that the gang of a group can do without.
func PartName(gang string, pod *corev1.Pod) string { return gang + "/" + pod.Name }

// parts divides the unit of an elastic gang: one of its fewest members by rank, with the rank at which the others meet, and one of each other member. A gang
// that has no more than it needs is one unit, and so is one that leaves.
func (u Unit) parts(resources []corev1.ResourceName) []Unit {
	least := 0
	if IsElastic(u.Group) {
		least = int(u.Group.Spec.SchedulingPolicy.Gang.MinCount)
	}
	stay := slices.DeleteFunc(slices.Clone(u.Pods), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if least == 0 || len(stay) < least || len(u.Pods) == least {
		return []Unit{u}
	}
	needed := InRankOrder(stay)[:least]
	whole := u
	fewest := Unit{Name: u.Name, Group: u.Group, Priority: u.Priority, whole: &whole, tally: newTally(resources)}
	out := []Unit{fewest}
	for i, pod := range u.Pods {
		to := &out[0]
		if !slices.Contains(needed, pod) {
			out = append(out, Unit{
				Name: PartName(u.Name, pod), Of: u.Name, Group: u.Group, Priority: u.Priority, whole: &whole,
				tally: newTally(resources),
			})
			to = &out[len(out)-1]
		}
		to.Pods, to.Holds = append(to.Pods, pod), append(to.Holds, u.Holds[i])
		to.tally.add(saysOf(pod), u.Holds[i].Demand)
	}
	return out
}

// Wholes puts elastic gangs together again: each gang is one unit.
func Wholes(units []Unit) []Unit {
	out := make([]Unit, 0, len(units))
	for _, u := range units {
		switch {
		case u.Of != "":
		case u.whole != nil:
			out = append(out, *u.whole)
		default:
			out = append(out, u)
		}
	}
	return out
}
