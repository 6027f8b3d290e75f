package plan

import (
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// defaultMaxRestarts limits the restarts of a gang for which nothing else is configured: Kubernetes' own limit for the
// pods of a Job.
const defaultMaxRestarts = defaultBackoffLimit

// The names of the rules in a JobSet's failure policy.
const (
	ruleRestart  = "gangWasDisrupted"
	ruleFatal    = "exitCodeIsFatal"
	ruleFailed   = "rankFailed"
	ruleDeadline = "deadlineIsOver"
	ruleFail     = "anythingElseFails"
)

// failure is the policy for ranks that fail: all ranks start again together, or a lost one alone, so often, or not at
// all after some exit codes.
type failure struct {
	maxRestarts int32
	// limited is set if maxRestarts is the annotation's.
	limited bool
	codes   topology.ExitCodes
}

// newFailure reads the policy for the ranks of these ReplicatedJobs: from the annotations of the job or its runtime,
// else from the runtime's JobSet, else from its Jobs. Values that cannot be read are refused elsewhere.
func (d *draft) newFailure(members []string) failure {
	_, err := strconv.ParseInt(d.jobWish(topology.AnnotationMaxRestarts), 10, 32)
	policy := failure{maxRestarts: d.maxRestarts(members), limited: err == nil}
	for _, g := range d.gangs { // as the scheduler reads it
		if codes, err := topology.ParseExitCodes(g.annotations[topology.AnnotationExitCodes]); err == nil {
			policy.codes = codes
			break
		}
	}
	return policy
}

func (d *draft) maxRestarts(members []string) int32 {
	if number, err := strconv.ParseInt(d.jobWish(topology.AnnotationMaxRestarts), 10, 32); err == nil {
		return int32(number)
	}
	if own := d.spec.FailurePolicy; own != nil {
		return own.MaxRestarts
	}
	most := int32(-1)
	for i := range d.spec.ReplicatedJobs {
		replicated := &d.spec.ReplicatedJobs[i]
		if limit := replicated.Template.Spec.BackoffLimit; limit != nil && slices.Contains(members, replicated.Name) {
			most = max(most, *limit)
		}
	}
	if most < 0 {
		return defaultMaxRestarts
	}
	return most
}

// answer is a rule for failed pods and the gang's reaction to a match.
type answer struct {
	// name is that of the rule in the JobSet's policy; empty if the Job continues.
	name   string
	pods   batchv1.PodFailurePolicyRule
	action jobsetv1alpha2.FailurePolicyAction
}

// answers are the rules for failed ranks in order; the first that matches holds. Every eviction by Kubernetes' own
// components and by Lockstep's scheduler gives the pod the condition DisruptionTarget first, and so does the scheduler
// to pods that a kubelet refuses. Evictions are not counted. A failure that no rule matches exceeds the Job's
// backoffLimit of 0, or with replace is counted.
//
// A rule for exit codes also sees the pods that a Job deletes when it is suspended, and which end by a signal; the
// count for backoffLimit does not. So no rule names exit codes unless some are fatal, and then the scheduler marks such
// pods.
func (f failure) answers(disruption string) []answer {
	all := []answer{
		{
			ruleRestart,
			onCondition(batchv1.PodFailurePolicyActionFailJob, corev1.DisruptionTarget),
			jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts,
		},
	}
	if disruption == disruptionReplace {
		all = []answer{{pods: onCondition(batchv1.PodFailurePolicyActionIgnore, corev1.DisruptionTarget)}}
	}
	if fatal := f.fatal(); fatal != nil {
		all = append(all,
			answer{pods: onCondition(batchv1.PodFailurePolicyActionIgnore, standing.TakenAway)},
			answer{ruleFatal, onExit(fatal), jobsetv1alpha2.FailJobSet})
	}
	return all
}

// ofPods is a Job's policy for its failed pods.
func (f failure) ofPods(disruption string) *batchv1.PodFailurePolicy {
	policy := &batchv1.PodFailurePolicy{}
	for _, answer := range f.answers(disruption) {
		policy.Rules = append(policy.Rules, answer.pods)
	}
	return policy
}

func onCondition(
	action batchv1.PodFailurePolicyAction,
	condition corev1.PodConditionType,
) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{
		Action: action,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: condition, Status: corev1.ConditionTrue},
		},
	}
}

// anyExitCode matches all exit codes but success, which is never a failure and stands there because the list must not
// be empty.
func anyExitCode() *batchv1.PodFailurePolicyOnExitCodesRequirement {
	return &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0},
	}
}

func onExit(codes *batchv1.PodFailurePolicyOnExitCodesRequirement) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: codes}
}

// fatal matches the exit codes that are fatal, nil for none.
func (f failure) fatal() *batchv1.PodFailurePolicyOnExitCodesRequirement {
	codes, others := f.codes.Fatal()
	switch {
	case others && len(codes) == 0:
		return anyExitCode()
	case others:
		return &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn,
			Values:   codes,
		}
	case len(codes) == 0:
		return nil
	}
	return &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
		Values:   codes,
	}
}

// ofAnswers are the rules of a JobSet for the Jobs that a rule of their podFailurePolicy has failed.
func (f failure) ofAnswers(disruption string, members []string) []jobsetv1alpha2.FailurePolicyRule {
	var rules []jobsetv1alpha2.FailurePolicyRule
	for i, answer := range f.answers(disruption) {
		if answer.name == "" {
			continue
		}
		rules = append(rules, jobsetv1alpha2.FailurePolicyRule{
			Name: answer.name, Action: answer.action, TargetReplicatedJobs: members,
			OnJobFailureReasons:         []string{batchv1.JobReasonPodFailurePolicy},
			OnJobFailureMessagePatterns: []string{"rule at index " + strconv.Itoa(i) + "$"},
		})
	}
	return rules
}

// ofReplaced is the JobSet's policy where a lost rank starts again alone. Without a policy any failed Job is final. The
// runtime's policy remains, but would restart all ranks after a fatal exit code and beyond the annotation's limit.
func (f failure) ofReplaced(own *jobsetv1alpha2.FailurePolicy, members []string) *jobsetv1alpha2.FailurePolicy {
	rules := f.ofAnswers(disruptionReplace, members)
	if f.limited {
		rules = append(rules, jobsetv1alpha2.FailurePolicyRule{
			Name: ruleFailed, Action: jobsetv1alpha2.FailJobSet, TargetReplicatedJobs: members,
			OnJobFailureReasons: []string{
				batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonMaxFailedIndexesExceeded,
			},
		})
	}
	if own == nil || len(rules) == 0 {
		return own
	}
	policy := own.DeepCopy()
	policy.Rules = append(rules, policy.Rules...)
	return policy
}

// ofGang is the JobSet's policy. It distinguishes the reasons of a Job's failure by the rule's index, which Kubernetes
// writes into the message. Of Jobs outside the gang any failure is final, unless the runtime has a policy.
func (f failure) ofGang(own *jobsetv1alpha2.FailurePolicy, members []string) *jobsetv1alpha2.FailurePolicy {
	policy := own.DeepCopy()
	if policy == nil {
		policy = &jobsetv1alpha2.FailurePolicy{}
	}
	policy.MaxRestarts = f.maxRestarts
	policy.Rules = append(f.ofAnswers(disruptionRestart, members), jobsetv1alpha2.FailurePolicyRule{
		Name: ruleFailed, Action: jobsetv1alpha2.RestartJobSet, TargetReplicatedJobs: members,
		OnJobFailureReasons: []string{batchv1.JobReasonBackoffLimitExceeded},
	}, jobsetv1alpha2.FailurePolicyRule{
		Name:                ruleDeadline,
		Action:              jobsetv1alpha2.FailJobSet,
		OnJobFailureReasons: []string{batchv1.JobReasonDeadlineExceeded},
	})
	if own == nil {
		policy.Rules = append(
			policy.Rules,
			jobsetv1alpha2.FailurePolicyRule{Name: ruleFail, Action: jobsetv1alpha2.FailJobSet},
		)
	}
	return policy
}
