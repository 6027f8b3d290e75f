package snapshot

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Reading configures the reading of units for package contention.
type Reading struct {
	// Accelerators are the resources whose loss counts.
	Accelerators []corev1.ResourceName
	// Protected reports whether an administrator has marked a PriorityClass as not to be preempted; nil is never.
	Protected func(priorityClass string) bool
	// Budgets returns the number of a unit's pods that each disruption budget covers; nil is none.
	Budgets func(pods []*corev1.Pod) []contention.Covered
	// BudgetVersion changes whenever Budgets may answer otherwise about the pods of a namespace than before. The units
	// of that namespace are read again then. nil never changes.
	BudgetVersion func(namespace string) int
	// Devices returns the number of accelerators that the claims of a unit have; nil is none.
	Devices func(Unit) int64
	// Predicted returns the instant at which a unit is predicted to end that declares no end, in seconds since 1970,
	// false if nothing is predicted; nil predicts nothing.
	Predicted func(Unit) (int64, bool)
	// Version changes whenever the other functions may answer otherwise than before. All units are read again then.
	Version int
}

// Contenders returns the running units as package contention reads them, in the numbers of the view's tree and
// resources. The set is the index's: it changes with the next call only. Units whose pods and whose PodGroup are the
// same objects are read once for each version of the Reading.
func (v View) Contenders(groups fwk.PodGroupLister, r Reading) *contention.Units {
	return v.running.contend(groups, v.resources, r)
}

func (r *running) contend(
	groups fwk.PodGroupLister, resources []corev1.ResourceName, reading Reading,
) *contention.Units {
	again := r.version != reading.Version
	r.version = reading.Version
	for _, id := range r.gone {
		r.contenders.Remove(id)
	}
	r.gone = r.gone[:0]
	for _, key := range r.order {
		m := r.groups[key]
		budgets := reading.budgetVersion(key.Namespace)
		m.read = m.read && !again && m.budgets == budgets
		if group := gangOf(key, groups); !m.built || m.group != group {
			m.units, m.group, m.built, m.read = m.build(key, group, resources), group, true, false
		}
		if m.read {
			continue
		}
		r.forget(m)
		for _, u := range m.units {
			unit := u.Contender(reading)
			r.contenders.Add(unit)
			m.ids = append(m.ids, unit.ID)
		}
		m.read, m.budgets = true, budgets
	}
	return &r.contenders
}

func (r Reading) budgetVersion(namespace string) int {
	if r.BudgetVersion == nil {
		return 0
	}
	return r.BudgetVersion(namespace)
}

// forget drops the contenders of a key.
func (r *running) forget(m *members) {
	for _, id := range m.ids {
		r.contenders.Remove(id)
	}
	m.ids = m.ids[:0]
}

// Contender returns the unit as package contention reads it. One that drains leaves by itself.
func (u Unit) Contender(r Reading) *contention.Unit {
	if u.drains() {
		return &contention.Unit{
			ID: contention.ID(u.Name), Holds: u.Holds, Priority: u.Priority, Preemptible: true, Leaving: true,
			End: contention.End{At: seconds(u.until), Certainty: contention.Certain},
		}
	}
	if r.Devices != nil {
		u.Devices = r.Devices(u)
	}
	u.tally = u.sum()
	out := &contention.Unit{
		ID: contention.ID(u.Name), Holds: u.Holds, Priority: u.Priority,
		Preemptible:  len(u.Pods) > 0 && !u.Returns() && !u.protected(r),
		Accelerators: u.Accelerators(r.Accelerators), Started: seconds(u.Started()), Saved: seconds(u.Saved()),
		End: u.certainty(), Leaving: len(u.Pods) > 0 && u.Leaving(), Sweep: SweepOf(u.Group),
	}
	if out.End.Certainty == contention.Unknown && r.Predicted != nil {
		if at, ok := r.Predicted(u); ok {
			out.End = contention.End{At: at, Certainty: contention.Predicted}
		}
	}
	if out.Grace = u.tally.grace; u.whole != nil {
		out.Of, out.Started = contention.ID(u.Of), seconds(u.whole.Started())
		out.Stops = u.whole.Accelerators(r.Accelerators)
		if r.Devices != nil {
			out.Stops += r.Devices(*u.whole)
		}
	}
	if out.Leaving { // it leaves when the grace is over, whatever its known end was before
		out.End = contention.End{At: u.tally.deleted, Certainty: contention.Certain}
	}
	if r.Budgets != nil {
		out.Budgets = r.Budgets(u.Pods)
	}
	return out
}

// protected reports whether the PriorityClass of a member exempts the unit from preemption.
func (u Unit) protected(r Reading) bool {
	return r.Protected != nil && slices.ContainsFunc(u.sum().classes, r.Protected)
}

// certainty returns the end of the unit, and its reliability. A gang's end is its deadline, or the end that its trainer
// reports; a pod's is its deadline.
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

// Protects reports whether an administrator has marked the PriorityClass as not to be preempted.
func Protects(class *schedulingv1.PriorityClass) bool {
	return class.Annotations[topology.AnnotationPreemptible] == "false"
}
