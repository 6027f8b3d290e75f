package dialects

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Phase is the progress of a gang, in the words of scheduler-plugins.
type Phase string

const (
	// Pending means that fewer members than start together have nodes.
	Pending Phase = "Pending"
	// Scheduling means that enough members have nodes, and not all of these run.
	Scheduling Phase = "Scheduling"
	// Running means that enough members run, or have succeeded.
	Running Phase = "Running"
	// Finished means that enough members have succeeded.
	Finished Phase = "Finished"
	// Failed means that members have failed, and the gang has all that it needs.
	Failed Phase = "Failed"
)

// Standing counts the members of a gang. Its dialect makes the status of the group's own object of it.
type Standing struct {
	// Minimum counts the members that start together.
	Minimum int
	// Scheduled members have nodes, or had: Running, Succeeded and Failed ones are among them. Active ones have not ended.
	Scheduled, Running, Succeeded, Failed, Active int
	// Owners are the owners of the first member, as NAMESPACE/NAME, separated by commas.
	Owners string
	// Since is the time at which the gang began to wait.
	Since time.Time
}

// StandingOf counts the members of a gang: those that have not ended, and those that have.
func StandingOf(minimum int, since time.Time, members ...*corev1.Pod) Standing {
	s := Standing{Minimum: minimum, Since: since}
	if len(members) > 0 {
		first := slices.MinFunc(members, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		var owners []string
		for _, owner := range first.OwnerReferences {
			owners = append(owners, first.Namespace+"/"+owner.Name)
		}
		slices.Sort(owners)
		s.Owners = strings.Join(owners, ",")
	}
	phases := map[corev1.PodPhase]int{}
	for _, pod := range members {
		phases[pod.Status.Phase]++
		if pod.Spec.NodeName != "" {
			s.Scheduled++
		}
	}
	s.Running, s.Succeeded, s.Failed = phases[corev1.PodRunning], phases[corev1.PodSucceeded], phases[corev1.PodFailed]
	s.Active = len(members) - s.Succeeded - s.Failed
	return s
}

// Phase returns the progress of the gang.
func (s Standing) Phase() Phase {
	switch {
	case s.Succeeded >= s.Minimum:
		return Finished
	case s.Failed > 0 && s.Failed+s.Running+s.Succeeded >= s.Minimum:
		return Failed
	case s.Running+s.Succeeded >= s.Minimum:
		return Running
	case s.Scheduled >= s.Minimum:
		return Scheduling
	}
	return Pending
}

// values returns the variables of expressions about the gang.
func (s Standing) values() map[string]any {
	return map[string]any{
		"minimum":   s.Minimum,
		"scheduled": s.Scheduled,
		"running":   s.Running,
		"succeeded": s.Succeeded,
		"failed":    s.Failed,
		"phase":     string(s.Phase()),
	}
}

// Changes returns the fields in which a status differs from the gang's standing; none once it says that the gang is
// over and none of its members is active: ended members are deleted sooner or later.
func (d Dialect) Changes(status map[string]any, gang Standing) map[string]any {
	if gang.Active == 0 && d.over(status) {
		return nil
	}
	changes := map[string]any{}
	for field, value := range d.Status(gang) {
		if now := status[field]; now != value && (now != nil || value != int64(0) && value != "") {
			changes[field] = value
		}
	}
	return changes
}

// over reports whether a status has the phase of a gang that has finished or failed.
func (d Dialect) over(status map[string]any) bool {
	const phase = "phase"
	finished, failed := d.Status(Standing{Minimum: 1, Succeeded: 1}), d.Status(Standing{Minimum: 1, Failed: 1})
	return status[phase] != nil && (status[phase] == finished[phase] || status[phase] == failed[phase])
}
