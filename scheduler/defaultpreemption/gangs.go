package defaultpreemption

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Kube-scheduler's preemption ends a part of a gang unless the gang's disruptionMode says all. The remaining members
// would hold their nodes and train nothing: here every gang is one that leaves as a whole, as for preemption by gangs.

// wholeGangs is a handle that shows gangs as such.
type wholeGangs struct{ fwk.Handle }

// SnapshotSharedLister implements fwk.Handle.
func (h wholeGangs) SnapshotSharedLister() fwk.SharedLister { //nolint:ireturn // as declared
	return whole{h.Handle.SnapshotSharedLister()}
}

// MutableSnapshotSharedLister implements fwk.Handle.
func (h wholeGangs) MutableSnapshotSharedLister() fwk.MutableSnapshotSharedLister { //nolint:ireturn // as declared
	return wholeMutable{h.Handle.MutableSnapshotSharedLister()}
}

type whole struct{ fwk.SharedLister }

// PodGroups implements fwk.SharedLister.
func (l whole) PodGroups() fwk.PodGroupLister { return groups{l.SharedLister.PodGroups()} } //nolint:ireturn // as declared

type wholeMutable struct {
	fwk.MutableSnapshotSharedLister
}

// PodGroups implements fwk.SharedLister.
func (l wholeMutable) PodGroups() fwk.PodGroupLister { //nolint:ireturn // as declared
	return groups{l.MutableSnapshotSharedLister.PodGroups()}
}

type groups struct{ of fwk.PodGroupLister }

// Get implements fwk.PodGroupLister. The group is a shallow copy: it is asked for with every pod.
func (l groups) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	group, err := l.of.Get(namespace, name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil {
		return group, err //nolint:wrapcheck // it is the lister's
	}
	shown := *group
	shown.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	return &shown, nil
}
