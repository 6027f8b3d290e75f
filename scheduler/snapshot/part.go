package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/topology"
)

// IsElastic reports whether the gang of a group continues with fewer members than all, and takes more when it runs. Its
// job declares that by lockstep.dev/min-nodes. Of other groups with a minCount below their size, only the start is
// known to do with fewer.
func IsElastic(group *schedulingv1beta1.PodGroup) bool {
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return false
	}
	_, ok := topology.SpanOf(group.Annotations)
	return ok
}

// PartName is the name of the unit of a member that the gang of a group can do without.
func PartName(gang string, pod *corev1.Pod) string { return gang + "/" + pod.Name }

// parts divides the unit of an elastic gang, as contention.Spare says: one of its fewest members, with the rank at
// which the others meet, and one of each other member.
func (u Unit) parts(resources []corev1.ResourceName) []Unit {
	if !IsElastic(u.Group) {
		return []Unit{u}
	}
	ranked := InRankOrder(u.Pods)
	leaves := make([]bool, len(ranked))
	for i, pod := range ranked {
		leaves[i] = eviction.Leaves(pod)
	}
	spare := contention.Spare(int(u.Group.Spec.SchedulingPolicy.Gang.MinCount), leaves)
	if spare == nil {
		return []Unit{u}
	}
	parts := make(map[*corev1.Pod]bool)
	for i, pod := range ranked {
		parts[pod] = spare[i]
	}
	whole := u
	out := []Unit{{Name: u.Name, Group: u.Group, Priority: u.Priority, whole: &whole, tally: newTally(resources)}}
	for i, pod := range u.Pods {
		to := &out[0]
		if parts[pod] {
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
