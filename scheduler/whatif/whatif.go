package whatif

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/finished"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Objects are a cluster as far as placement depends on it. They are never changed.
type Objects struct {
	Nodes     []*corev1.Node
	Pods      []*corev1.Pod
	PodGroups []*schedulingv1beta1.PodGroup
	Budgets   []*policyv1.PodDisruptionBudget
	// PriorityClasses matter if an administrator has marked them as not to be preempted.
	PriorityClasses []*schedulingv1.PriorityClass
	Devices         Devices
	// Replaces are the gangs whose evicted members are created again alone (lockstep.dev/on-disruption: replace). Of
	// all others all members start again. The caller has to know the gang's job.
	Replaces map[types.NamespacedName]bool
}

// protected returns the names of the PriorityClasses that are not to be preempted.
func (o Objects) protected() func(class string) bool {
	marked := make(map[string]bool)
	for _, class := range o.PriorityClasses {
		marked[class.Name] = snapshot.Protects(class)
	}
	return func(class string) bool { return marked[class] }
}

// Profile is the part of the scheduler's profile on which answers depend.
type Profile struct {
	// Scheduler is the schedulerName of the pods that it schedules.
	Scheduler string
	Placement config.GangPlacementArgs
}

// WhatIf is a cluster at an instant.
type WhatIf struct {
	objects      Objects
	profile      Profile
	now          time.Time
	levels       []topology.Level
	accelerators []corev1.ResourceName
	// over are the PodGroups that linger: all of their pods have ended.
	over map[types.NamespacedName]bool
}

// New returns a WhatIf. The error names the node or level that cannot be read.
func New(objects Objects, profile Profile, now time.Time) (*WhatIf, error) {
	levels, err := profile.Placement.Ladder()
	if err != nil {
		return nil, fmt.Errorf("levels: %w", err)
	}
	w := &WhatIf{objects: objects, profile: profile, now: now, levels: levels}
	for _, name := range profile.Placement.Accelerators {
		w.accelerators = append(w.accelerators, corev1.ResourceName(name))
	}
	w.objects.PodGroups = make([]*schedulingv1beta1.PodGroup, len(objects.PodGroups))
	for i, group := range objects.PodGroups {
		w.objects.PodGroups[i] = finished.Seen(group)
	}
	w.over = objects.over()
	w.objects.Pods = slices.DeleteFunc(slices.Clone(objects.Pods), snapshot.Ended) // they hold nothing
	w.objects = w.objects.claimed()
	if _, err := w.newCluster(); err != nil {
		return nil, err
	}
	return w, nil
}

// With returns the same cluster with one more gang, its members, and their devices.
func (w *WhatIf) With(
	group *schedulingv1beta1.PodGroup, members []*corev1.Pod, devices Devices,
) *WhatIf {
	more := *w
	more.objects.PodGroups = slices.Concat(w.objects.PodGroups, []*schedulingv1beta1.PodGroup{group})
	more.objects.Pods = slices.Concat(w.objects.Pods, members)
	more.objects.Devices = w.objects.Devices.and(devices)
	more.objects = more.objects.claimed()
	return &more
}

// Now is the instant for which the answers are.
func (w *WhatIf) Now() time.Time { return w.now }
