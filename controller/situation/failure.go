package situation

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// The limits of a RankFailure's texts in bytes, as the CRD has them in characters.
const (
	nameLimit  = 253
	labelLimit = 63
	wordLimit  = 128
)

// lastFailure returns the latest failure that a scheduler reports of the groups, nil if none is later than the one that
// is known. A report that another version of the scheduler writes otherwise is left out.
func lastFailure(groups []schedulingv1beta1.PodGroup, known *trainerv1alpha1.RankFailure) *trainerv1alpha1.RankFailure {
	var last *trainerv1alpha1.RankFailure
	for i := range groups {
		condition := holding(groups[i].Status.Conditions, standing.RankFailed)
		if condition == nil || known != nil && condition.LastTransitionTime.Before(&known.Time) {
			continue
		}
		failure, err := standing.ParseFailure(condition.Message)
		if err != nil || last != nil && !last.Time.Before(&condition.LastTransitionTime) {
			continue
		}
		last = failureOf(failure)
		last.Time = condition.LastTransitionTime
	}
	return last
}

func failureOf(f standing.Failure) *trainerv1alpha1.RankFailure {
	out := &trainerv1alpha1.RankFailure{
		Pod: f.Pod[:min(len(f.Pod), nameLimit)], Node: f.Node[:min(len(f.Node), nameLimit)],
		Container: f.Container[:min(len(f.Container), labelLimit)], Reason: f.Reason[:min(len(f.Reason), wordLimit)],
		Message: cut(f.Message),
	}
	if f.Rank >= 0 {
		out.Rank = new(int32(min(f.Rank, 1<<31-1)))
	}
	if f.Container != "" {
		out.ExitCode = new(f.ExitCode)
	}
	return out
}

// text prints a failure for an Event.
func text(f *trainerv1alpha1.RankFailure) string {
	failure := standing.Failure{
		Rank: -1, Pod: f.Pod, Node: f.Node, Container: f.Container, Reason: f.Reason, Message: f.Message,
	}
	if f.Rank != nil {
		failure.Rank = int(*f.Rank)
	}
	if f.ExitCode != nil {
		failure.ExitCode = *f.ExitCode
	}
	return cut(failure.String())
}
