package plan

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/topology"
)

// The values of the annotation that says what becomes of a gang that loses a member.
const (
	// disruptionRestart lets all members start again together, as often as it takes: nothing of it is the job's fault.
	disruptionRestart = "restart"
	// disruptionReplace lets the lost member alone come back, for jobs that can go on with the others (elastic ones).
	disruptionReplace = "replace"
)

// defaultBackoffLimit is how often pods of a Job may fail that says nothing of it: Kubernetes' own default, which it would not
// apply to a Job with a limit for each index.
const defaultBackoffLimit = 6

// disruption is the policy for members that end early. Of those that are evicted (preempted, drained, on a node that went away) Kubernetes counts each
// as a failure of its Job, so that a gang that was preempted a few times would fail for good. A rank that fails by itself it makes again alone, in a
// world that cannot go on without it.
type disruption struct {
	// keeps is empty, or says whose policy is kept instead of ours.
	keeps string
	// action is one of disruptionRestart and disruptionReplace.
	action string
	// members are the names of the ReplicatedJobs it holds for.
	members []string
	// failure holds for ranks that fail, if all start again together.
	failure failure
}

// gangMembers are the ReplicatedJobs of the job whose pods start together. Pods of groups that start one by one end one by one
// too, and Kubernetes' own rules do for them.
func (d *draft) gangMembers() []string {
	var names []string
	for _, g := range d.gangs {
		if !isBasic(g.rules) {
			names = append(names, g.members...)
		}
	}
	return names
}

// newDisruption decides the policy for members of the job. Policies of the runtime are kept, all of them: half of two policies is
// neither.
func (d *draft) newDisruption(members []string) disruption {
	policy := disruption{action: disruptionRestart, members: members}
	if d.jobWish(topology.AnnotationOnDisruption) == disruptionReplace || d.span.isElastic() {
		policy.action = disruptionReplace
	}
	for _, replicated := range d.spec.ReplicatedJobs {
		job := replicated.Template.Spec
		switch {
		case !slices.Contains(members, replicated.Name):
		case job.PodFailurePolicy != nil:
			policy.keeps = "podFailurePolicy of replicated job " + replicated.Name
			return policy
		case ptr.Deref(job.PodReplacementPolicy, batchv1.Failed) != batchv1.Failed:
			policy.keeps = "podReplacementPolicy of replicated job " + replicated.Name
			return policy
		case job.BackoffLimitPerIndex != nil && policy.action == disruptionRestart:
			policy.keeps = "backoffLimitPerIndex of replicated job " + replicated.Name
			return policy
		}
	}
	own := d.spec.FailurePolicy
	switch {
	case own == nil || policy.action == disruptionReplace:
	case len(own.Rules) > 0:
		policy.keeps = "rules of the failurePolicy"
	case own.RestartStrategy == jobsetv1alpha2.InPlaceRestart:
		policy.keeps = "restartStrategy of the failurePolicy"
	}
	policy.failure = d.newFailure(members)
	return policy
}

// checkDisruption refuses a wish for which there is no gang. That all start again is what gangs do anyway.
func (d *draft) checkDisruption() field.ErrorList {
	value := d.jobWish(topology.AnnotationOnDisruption)
	if value != disruptionReplace || len(d.gangMembers()) > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(annotationPath(topology.AnnotationOnDisruption), value,
		"needs a gang, and "+topology.AnnotationGang+" is off for this job")}
}

// render writes the policy into the JobSet and returns what its owner should know.
func (p disruption) render(spec *jobsetv1alpha2.JobSetSpec) (notes []string) {
	if p.keeps != "" {
		return []string{
			fmt.Sprintf("kept as the runtime has it: %s; an evicted member may count as a failure of the job", p.keeps),
		}
	}
	for i := range spec.ReplicatedJobs {
		replicated := &spec.ReplicatedJobs[i]
		if !slices.Contains(p.members, replicated.Name) {
			continue
		}
		job := &replicated.Template.Spec
		if job.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
			notes = append(
				notes,
				fmt.Sprintf("restartPolicy OnFailure of replicated job %s became Never, which the policy for "+
					"evicted members of a gang needs", replicated.Name),
			)
		}
		job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		tellWhy(&job.Template.Spec)
		if p.action == disruptionReplace {
			job.PodFailurePolicy = &batchv1.PodFailurePolicy{
				Rules: []batchv1.PodFailurePolicyRule{
					onCondition(batchv1.PodFailurePolicyActionIgnore, corev1.DisruptionTarget),
				},
			}
			// The device and the rank are free only once the old pod has ended.
			job.PodReplacementPolicy = new(batchv1.Failed)
			backOffAlone(job)
			continue
		}
		if own := job.BackoffLimit; own != nil {
			notes = append(notes, fmt.Sprintf(
				"backoffLimit %d of replicated job %s became the number of restarts: a failed rank does not start again without the others",
				*own,
				replicated.Name,
			))
		}
		job.PodFailurePolicy = p.failure.ofPods()
		job.BackoffLimit = new(int32(0))
	}
	if p.action == disruptionRestart {
		spec.FailurePolicy = p.failure.ofGang(spec.FailurePolicy, p.members)
	}
	return notes
}

// tellWhy has the last lines of a failed container's log in the pod's status, unless the container says where its last words are: what ended a gang is
// reported without a right to read logs.
func tellWhy(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if containers[i].TerminationMessagePolicy == "" {
				containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
	}
}

// backOffAlone lets each rank wait for itself before it is made anew. A Job doubles the wait with each pod that it lost, whoever's
// fault that was, up to ten minutes: a gang that moves would be idle for as long. How many failures are allowed in all stays
// as it is, and one rank that is beyond it still ends all.
func backOffAlone(job *batchv1.JobSpec) {
	if ptr.Deref(job.CompletionMode, batchv1.IndexedCompletion) != batchv1.IndexedCompletion ||
		job.BackoffLimitPerIndex != nil {
		return
	}
	limit := ptr.Deref(job.BackoffLimit, defaultBackoffLimit)
	job.BackoffLimit, job.BackoffLimitPerIndex, job.MaxFailedIndexes = new(limit), new(limit), new(int32(0))
}
