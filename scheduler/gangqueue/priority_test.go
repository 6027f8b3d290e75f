package gangqueue_test

import (
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// prioritized returns a copy of a group with a priority.
func prioritized(g *schedulingv1beta1.PodGroup, priority int32) *schedulingv1beta1.PodGroup {
	g = g.DeepCopy()
	g.Spec.Priority = &priority
	return g
}

// A group that is a custom resource is created without a priority. Its pods wait until it has theirs, and enter whole
// with the event that says so: kube-scheduler refuses members whose priority is not that of their group.
func TestGangQueue_PodsWaitForTheirGroupsPriority(t *testing.T) {
	const size = 3
	basic := group("g", size)
	basic.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{},
	}
	for name, before := range map[string]*schedulingv1beta1.PodGroup{"a gang": group("g", size), "a basic group": basic} {
		t.Run(name, func(t *testing.T) {
			s := newScheduler()
			plugin, _ := newPlugin(t, s)
			q := newQueue(t, plugin, s)
			q.group(nil, before)
			for i := range size {
				pod := member("g", i)
				pod.Spec.Priority = new(int32(7))
				q.pod(pod)
			}
			if q.active["g"] != 0 {
				t.Fatalf("%d members entered before their group had a priority", q.active["g"])
			}
			labeled := before.DeepCopy()
			labeled.Labels = map[string]string{"team": "a"}
			q.group(before, labeled)
			if q.active["g"] != 0 {
				t.Fatalf("%d members entered with an update of something else", q.active["g"])
			}
			q.group(labeled, prioritized(before, 7))
			if q.active["g"] != size {
				t.Errorf("%d members entered with their group's priority, want %d", q.active["g"], size)
			}
		})
	}
}

// The priority does not open a gang whose members are still missing, and the last member opens one that got its
// priority before.
func TestGangQueue_APriorityOpensNoIncompleteGang(t *testing.T) {
	const size = 3
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	before := group("g", size)
	q.group(nil, before)
	for i := range size {
		pod := member("g", i)
		pod.Spec.Priority = new(int32(7))
		if i == size-1 {
			q.group(before, prioritized(before, 7))
			if q.active["g"] != 0 {
				t.Fatalf("%d members entered, and one is missing", q.active["g"])
			}
		}
		q.pod(pod)
	}
	if q.active["g"] != size {
		t.Errorf("%d members entered, want %d", q.active["g"], size)
	}
}

// Pods with priority 0 or none do not wait: nothing will be written into their group.
func TestGangQueue_PodsWithoutPriorityDoNotWait(t *testing.T) {
	for name, priority := range map[string]*int32{"0": new(int32(0)), "none": nil} {
		s := newScheduler()
		plugin, _ := newPlugin(t, s)
		q := newQueue(t, plugin, s)
		pod := member("g", 0)
		pod.Spec.Priority = priority
		q.group(nil, group("g", 1))
		q.pod(pod)
		if q.active["g"] != 1 {
			t.Errorf("priority %s: the pod waits", name)
		}
	}
}
