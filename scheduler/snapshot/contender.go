package snapshot

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Reading says how units are read for package contention.
type Reading struct {
	// Accelerators are the resources whose loss counts.
	Accelerators []corev1.ResourceName
	// Protected reports whether an administrator has marked a PriorityClass as not to be preempted; nil is never.
	Protected func(priorityClass string) bool
	// Budgets returns how many pods of a unit each disruption budget covers; nil is none.
	Budgets func(pods []*corev1.Pod) []contention.Covered
}

// Contenders returns what runs as package contention reads it, in the numbers of the view's tree and resources. The set is the index's:
// it holds until the next Update. Units of which no pod came or left, and whose PodGroup is the same object, are read once. After a
// change of what the Reading says, Reread has all of them read again.
func (v View) Contenders(groups fwk.PodGroupLister, r Reading) *contention.Units {
	return v.running.contend(groups, v.resources, r)
}

// Reread has all units read again by the next Contenders.
func (v View) Reread() {
	for _, m := range v.running.groups {
		m.built = false
	}
}

func (r *running) contend(
	groups fwk.PodGroupLister, resources []corev1.ResourceName, reading Reading,
) *contention.Units {
	for _, key := range r.order {
		m := r.groups[key]
		if group := gangOf(key, groups); !m.built || m.group != group {
			m.units, m.group, m.built, m.read = m.build(key, group, resources), group, true, false
		}
		if m.read {
			continue
		}
		r.forget(m)
		for _, u := range m.units {
			unit := u.contender(reading)
			r.contenders.Add(unit)
			m.ids = append(m.ids, unit.ID)
		}
		m.read = true
	}
	return &r.contenders
}

// forget drops the contenders of a key.
func (r *running) forget(m *members) {
	for _, id := range m.ids {
		r.contenders.Remove(id)
	}
	m.ids = m.ids[:0]
}

// contender returns the unit as package contention reads it.
func (u Unit) contender(r Reading) *contention.Unit {
	out := &contention.Unit{
		ID: contention.ID(u.Name), Holds: u.Holds, Priority: u.Priority,
		Preemptible:  len(u.Pods) > 0 && !u.Returns() && !u.protected(r),
		Accelerators: u.Accelerators(r.Accelerators), Started: seconds(u.Started()), Saved: seconds(u.Saved()),
		End: u.certainty(), Leaving: len(u.Pods) > 0 && u.Leaving(),
	}
	for _, pod := range u.Pods {
		out.Grace = max(
			out.Grace,
			ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds),
		)
		if pod.DeletionTimestamp != nil && out.Leaving {
			out.End = contention.End{At: max(out.End.At, pod.DeletionTimestamp.Unix()), Certainty: contention.Certain}
		}
	}
	if r.Budgets != nil {
		out.Budgets = r.Budgets(u.Pods)
	}
	return out
}

// protected reports whether the PriorityClass of a member keeps the unit from preemption.
func (u Unit) protected(r Reading) bool {
	if r.Protected == nil {
		return false
	}
	for _, pod := range u.Pods {
		if r.Protected(pod.Spec.PriorityClassName) {
			return true
		}
	}
	return false
}

// certainty is when the unit ends, and how much that can be relied on. A gang's end is its deadline, or what its trainer reports; a
// pod's is its deadline.
func (u Unit) certainty() contention.End {
	end := u.End()
	switch {
	case u.Stays():
		return contention.End{Certainty: contention.Never}
	case end.IsZero():
		return contention.End{}
	case u.Group != nil:
		return contention.End{At: end.Unix(), Certainty: contention.Reported}
	}
	return contention.End{At: end.Unix(), Certainty: contention.Certain}
}

// seconds is an instant as package contention has it, 0 if there is none.
func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}
