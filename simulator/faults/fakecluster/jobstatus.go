package fakecluster

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status writes the outcome of a Job. It is over when none of its pods is left.
func (j *jobs) status(s *state) {
	next := s.job
	suspended := isTrue(next.Spec.Suspend)
	count := func(n int) int32 { return int32(n) } //nolint:gosec // no gang has so many members
	next.Status.Active, next.Status.Succeeded = count(len(s.active)-s.ending), count(len(s.succeeded))
	next.Status.Ready, next.Status.Terminating = new(count(s.ready)), new(count(s.ending))
	next.Status.CompletedIndexes = textOf(s.succeeded)
	if len(s.failed) > 0 {
		next.Status.FailedIndexes = new(textOf(s.failed))
	}
	now := metav1.NewTime(j.Now())
	condition := func(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
		for i, c := range next.Status.Conditions {
			if c.Type == kind {
				if c.Status != status {
					next.Status.Conditions[i].Status, next.Status.Conditions[i].LastTransitionTime = status, now
				}
				return
			}
		}
		if status == corev1.ConditionTrue {
			next.Status.Conditions = append(next.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: now,
			})
		}
	}
	switch {
	case s.verdict != "":
		condition(batchv1.JobFailureTarget, corev1.ConditionTrue, s.verdict, s.why)
		if len(s.active) == 0 {
			condition(batchv1.JobFailed, corev1.ConditionTrue, s.verdict, s.why)
		}
	case len(s.succeeded) >= completions(next):
		condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
		condition(batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
	case suspended:
		condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
		next.Status.StartTime = nil
		delete(j.failures, next.UID)
	default:
		condition(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
		if next.Status.StartTime == nil {
			next.Status.StartTime = &now
		}
	}
	_, err := j.Server.Update(next, "status")
	must(err)
}

func finished(job *batchv1.Job) bool {
	return Has(job, batchv1.JobComplete) || Has(job, batchv1.JobFailed)
}

// Has reports whether a condition of a Job is true.
func Has(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// targetOf is the reason for which a Job is about to fail, messageOf the message with it.
func targetOf(job *batchv1.Job) string  { return target(job).Reason }
func messageOf(job *batchv1.Job) string { return target(job).Message }

func target(job *batchv1.Job) batchv1.JobCondition {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailureTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return batchv1.JobCondition{}
}

func completions(job *batchv1.Job) int {
	if job.Spec.Completions == nil {
		return 1
	}
	return int(*job.Spec.Completions)
}

func indexOf(pod *corev1.Pod) int {
	at, _ := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	return at
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// indexes are those of a list; textOf lists them one by one.
func indexes(text string) map[int]bool {
	out := make(map[int]bool)
	for part := range strings.SplitSeq(text, ",") {
		if at, err := strconv.Atoi(part); err == nil {
			out[at] = true
		}
	}
	return out
}

func textOf(indexes map[int]bool) string {
	var out []string
	for _, at := range slices.Sorted(keys(indexes)) {
		out = append(out, strconv.Itoa(at))
	}
	return strings.Join(out, ",")
}

func keys[V any](m map[int]V) iter.Seq[int] { return maps.Keys(m) }
