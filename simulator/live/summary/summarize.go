package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/topology"
)

// An Observation is the state of a run at an instant.
type Observation struct {
	Fleet string
	// At is the moment of looking, up to which jobs that did not end have waited and run.
	At time.Time
	// Levels of the topology, outermost first.
	Levels []topology.Level
	Nodes  []corev1.Node
	// Jobs are in the order in which to report them.
	Jobs []JobObservation
}

// A JobObservation is one TrainJob, as last seen, with the objects around it.
type JobObservation struct {
	TrainJob    *unstructured.Unstructured
	Framework   string
	PodGroups   []*schedulingv1beta1.PodGroup // by name; none where the job is no gang
	SubmittedAt time.Time
	// Warning is the note of the last Event that warned about the TrainJob; empty where there is none.
	Warning string
}

func (j JobObservation) key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.TrainJob.GetNamespace(), Name: j.TrainJob.GetName()}
}

// Summarize makes the report of a run. Mode, components and kubeconfig are the caller's to fill.
func Summarize(seen Observation, ledger *Ledger) Report {
	labels := make(map[string]map[string]string, len(seen.Nodes))
	for i := range seen.Nodes {
		labels[seen.Nodes[i].Name] = seen.Nodes[i].Labels
	}
	report := Report{
		Fleet:      seen.Fleet,
		Nodes:      len(seen.Nodes),
		Components: []Component{},
		Jobs:       make([]Job, 0, len(seen.Jobs)),
		Levels:     seen.Levels,
	}
	for _, job := range seen.Jobs {
		members := ranked(ledger.seenOf(job), job.PodGroups)
		summary := summarize(job, members, seen.At)
		for i, member := range members {
			rank := Rank{Rank: i, Pod: member.pod, Node: member.node}
			rank.Domains = domainsOf(labels[member.node], seen.Levels)
			summary.Ranks = append(summary.Ranks, rank)
		}
		report.Jobs = append(report.Jobs, summary)
	}
	return report
}

// ranked leaves out the pods that have no rank: a job with a gang may have others beside it, such as initializers, in
// no group or in one whose pods start one by one.
func ranked(members []member, groups []*schedulingv1beta1.PodGroup) []member {
	gang := func(m member) bool {
		return m.group != "" && !slices.ContainsFunc(groups, func(group *schedulingv1beta1.PodGroup) bool {
			return group.Name == m.group && group.Spec.SchedulingPolicy.Basic != nil
		})
	}
	grouped := func(m member) bool { return m.group != "" }
	for _, counts := range []func(member) bool{gang, grouped} {
		if slices.ContainsFunc(members, counts) {
			return slices.DeleteFunc(members, func(m member) bool { return !counts(m) })
		}
	}
	return members
}

// seenOf is a job's members, with the places that count for a job that has ended or has not.
func (l *Ledger) seenOf(job JobObservation) []member {
	members := l.members(job.key())
	if endOf(job.TrainJob).Type == "" {
		return withoutLost(members)
	}
	return members
}

func domainsOf(labels map[string]string, levels []topology.Level) map[string]string {
	domains := make(map[string]string, len(levels))
	for _, level := range levels {
		if domain := level.Value(labels); domain != "" {
			domains[level.Name] = domain
		}
	}
	return domains
}

// summarize is all of a job but its ranks.
func summarize(job JobObservation, members []member, at time.Time) Job {
	end := endOf(job.TrainJob)
	summary := Job{
		Name:      job.TrainJob.GetName(),
		Namespace: job.TrainJob.GetNamespace(),
		Framework: job.Framework,
		Outcome:   cmp.Or(end.Type, Unplaced),
		Ranks:     make([]Rank, 0, len(members)),
	}
	ended := end.Type != ""
	until := at
	if ended {
		until = end.LastTransitionTime.Time
	}
	placed := placementOf(members)
	started := until
	if placed.count > 0 && (ended || placed.count == len(members)) {
		started = placed.last
		summary.RunSeconds = seconds(placed.first, until)
	}
	summary.WaitSeconds = seconds(job.SubmittedAt, started)
	switch {
	case end.Type == Failed:
		summary.Reason = cmp.Or(end.Message, end.Reason, "the TrainJob does not say why")
	case !ended:
		summary.Reason = whyUnplaced(job, members)
	}
	return summary
}

// placement is the progress of a job's members.
type placement struct {
	count       int // of members with a node
	first, last time.Time
}

func placementOf(members []member) placement {
	var p placement
	for _, member := range members {
		if member.node != "" {
			p.count++
		}
		if member.bound.IsZero() {
			continue
		}
		if p.first.IsZero() || member.bound.Before(p.first) {
			p.first = member.bound
		}
		if member.bound.After(p.last) {
			p.last = member.bound
		}
	}
	return p
}

// seconds between two instants, to the millisecond; none if either is unknown, or if clocks that round disagree.
func seconds(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return 0
	}
	return math.Round(to.Sub(from).Seconds()*1000) / 1000
}

// endOf is the condition that ended a TrainJob, or one without a type.
func endOf(trainJob *unstructured.Unstructured) metav1.Condition {
	for _, condition := range conditionsOf(trainJob) {
		if condition.Status == metav1.ConditionTrue && (condition.Type == Complete || condition.Type == Failed) {
			return condition
		}
	}
	return metav1.Condition{}
}

// whyUnplaced prefers the reason that concerns the whole gang over one that concerns a single pod.
func whyUnplaced(job JobObservation, members []member) string {
	placed := placementOf(members)
	if len(members) > 0 && placed.count == len(members) && len(members) >= minCount(job.PodGroups) {
		return fmt.Sprintf("all %d ranks were placed, but the job did not end", placed.count)
	}
	if said := groupsSay(job.PodGroups); said != "" {
		return said
	}
	for _, member := range members {
		if member.waiting != "" {
			return member.waiting
		}
	}
	for _, condition := range conditionsOf(job.TrainJob) {
		if condition.Type == "Suspended" && condition.Status == metav1.ConditionTrue {
			return strings.TrimSuffix("the TrainJob is suspended: "+condition.Message, ": ")
		}
	}
	for _, member := range members {
		if member.deleted {
			return "its pods were deleted and not replaced; see logs/lockstep-controller.log"
		}
	}
	if len(members) == 0 {
		return cmp.Or(job.Warning, "no pod was created; see logs/lockstep-controller.log")
	}
	return "no scheduler has said why; see logs/lockstep-scheduler.log"
}

// minCount returns the number of members that the job's gangs need, 0 without one.
func minCount(groups []*schedulingv1beta1.PodGroup) int {
	count := 0
	for _, group := range groups {
		if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
			count += int(gang.MinCount)
		}
	}
	return count
}

// ownConditions is the group of the conditions in which Lockstep explains itself.
const ownConditions = "lockstep.dev/"

// groupsSay returns the reason of the first group that waits for a known one.
func groupsSay(groups []*schedulingv1beta1.PodGroup) string {
	for _, group := range groups {
		if said := groupSays(group); said != "" {
			return said
		}
	}
	return ""
}

func groupSays(group *schedulingv1beta1.PodGroup) string {
	said := ""
	for _, condition := range group.Status.Conditions {
		refused := condition.Type == schedulingv1beta1.PodGroupInitiallyScheduled &&
			condition.Status == metav1.ConditionFalse
		switch {
		case strings.HasPrefix(condition.Type, ownConditions) && condition.Status == metav1.ConditionTrue:
			return condition.Message
		case refused:
			said = plain(condition.Message)
		}
	}
	return said
}

// plain takes kube-scheduler's frame off a reason: the count of nodes in front, which for a gang is always zero, and
// the text that its preemption adds when it finds no victims.
func plain(message string) string {
	if count, reason, framed := strings.Cut(
		message,
		" nodes are available: ",
	); framed &&
		!strings.Contains(count, " ") {
		message = reason
	}
	message, _, _ = strings.Cut(message, "., pod group preemption: ")
	return strings.TrimSuffix(message, ".")
}

// conditionsOf reads a TrainJob's conditions; malformed entries are left out.
func conditionsOf(trainJob *unstructured.Unstructured) []metav1.Condition {
	list, _, err := unstructured.NestedSlice(trainJob.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	var conditions []metav1.Condition
	for _, one := range list {
		fields, isMap := one.(map[string]any)
		if !isMap {
			continue
		}
		condition := metav1.Condition{
			Type:    text(fields["type"]),
			Status:  metav1.ConditionStatus(text(fields["status"])),
			Reason:  text(fields["reason"]),
			Message: text(fields["message"]),
		}
		if at, err := time.Parse(time.RFC3339, text(fields["lastTransitionTime"])); err == nil {
			condition.LastTransitionTime = metav1.NewTime(at)
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

func text(value any) string {
	said, _ := value.(string)
	return said
}
