package plan

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/topology"
)

// The values of the annotation for the reaction of a gang that loses a member.
const (
	// disruptionRestart lets all members start again together, without a limit, since a disruption is not the job's
	// fault.
	disruptionRestart = "restart"
	// disruptionReplace recreates the lost member alone, for jobs that can continue with the others (elastic ones).
	disruptionReplace = "replace"
)

// defaultBackoffLimit is the number of failures of pods of a Job that states no limit: Kubernetes' own default, which
// it would not apply to a Job with a limit for each index.
const defaultBackoffLimit = 6

// disruption is the policy for members that end early. Kubernetes counts each evicted member (preempted, drained, on a
// lost node) as a failure of its Job, so that a gang that was preempted a few times would fail for good. A rank that
// fails by itself is recreated alone, in a process group that cannot continue without it.
type disruption struct {
	// keeps names the runtime's policy that replaces ours; empty for none.
	keeps string
	// action is one of disruptionRestart and disruptionReplace.
	action string
	// members are the names of the ReplicatedJobs it holds for.
	members []string
	// failure holds for ranks that fail.
	failure failure
}

// gangMembers are the ReplicatedJobs of the job whose pods start together. Pods of groups that start one by one end one
// by one too, and Kubernetes' own rules do for them.
func (d *draft) gangMembers() []string {
	var names []string
	for _, g := range d.gangs {
		if !isBasic(g.rules) {
			names = append(names, g.members...)
		}
	}
	return names
}

// newDisruption decides the policy for members of the job. Policies of the runtime stay unchanged, all of them: half of
// two policies is neither.
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

// checkDisruption refuses a wish for which there is no gang. Gangs start all members again anyway.
func (d *draft) checkDisruption() field.ErrorList {
	value := d.jobWish(topology.AnnotationOnDisruption)
	if value != disruptionReplace || len(d.gangMembers()) > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(annotationPath(topology.AnnotationOnDisruption), value,
		"needs a gang, and "+topology.AnnotationGang+" is off for this job")}
}

// withoutEffect returns notes about limits and fatal exit codes that have no effect: beside a policy of the runtime's
// own, which is retained. They are no faults: a job may have run for long with them.
func (d *draft) withoutEffect(policy disruption) (notes []string) {
	ranks, limits := d.newFailure(policy.members), policy.keeps
	for _, replicated := range d.spec.ReplicatedJobs {
		own := replicated.Template.Spec.BackoffLimitPerIndex
		if limits == "" && own != nil && slices.Contains(policy.members, replicated.Name) {
			limits = "backoffLimitPerIndex of replicated job " + replicated.Name
		}
	}
	note := func(key, kept string) {
		notes = append(notes, fmt.Sprintf("annotation %s has no effect beside %s, which the runtime has", key, kept))
	}
	if ranks.limited && limits != "" && !d.span.isElastic() { // the trainer's own limit is that of elastic jobs
		note(topology.AnnotationMaxRestarts, limits)
	}
	if ranks.fatal() != nil && policy.keeps != "" {
		note(topology.AnnotationExitCodes, policy.keeps)
	}
	return notes
}

// render writes the policy into the JobSet and returns the notes for its owner.
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
		job.PodFailurePolicy = p.failure.ofPods(p.action)
		if p.action == disruptionReplace {
			// The device and the rank are free only once the old pod has ended.
			job.PodReplacementPolicy = new(batchv1.Failed)
			p.failure.backOffAlone(job)
			continue
		}
		if own := job.BackoffLimit; own != nil {
			notes = append(notes, fmt.Sprintf(
				"backoffLimit %d of replicated job %s became the number of restarts: a failed rank does not start again without the others",
				*own,
				replicated.Name,
			))
		}
		job.BackoffLimit = new(int32(0))
	}
	if p.action == disruptionReplace {
		spec.FailurePolicy = p.failure.ofReplaced(spec.FailurePolicy, p.members)
		return notes
	}
	spec.FailurePolicy = p.failure.ofGang(spec.FailurePolicy, p.members)
	if again := p.initializers(*spec); len(again) > 0 {
		notes = append(notes, fmt.Sprintf("each restart of the gang runs %s again before its members start: "+
			"JobSet recreates all Jobs, complete ones too", strings.Join(again, ", ")))
	}
	return notes
}

// initializers are the ReplicatedJobs that have to be complete before a member starts.
func (p disruption) initializers(spec jobsetv1alpha2.JobSetSpec) []string {
	var names []string
	for _, replicated := range spec.ReplicatedJobs {
		awaited := func(member string) bool {
			how := awaitedBy(spec, member)[replicated.Name]
			return how == complete || how == ready && initializes(spec.ReplicatedJobs, replicated.Name)
		}
		if slices.ContainsFunc(p.members, awaited) {
			names = append(names, replicated.Name)
		}
	}
	return names
}

// tellWhy puts the last lines of a failed container's log into the pod's status, unless the container sets a
// terminationMessagePolicy: the cause of a gang's end is reported without a right to read logs.
func tellWhy(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if containers[i].TerminationMessagePolicy == "" {
				containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
	}
}

// backOffAlone gives each rank its own backoff before it is recreated. A Job doubles the wait with each pod that it
// lost, for any cause, up to ten minutes: a gang that moves would be idle for as long. The number of allowed failures
// in all is the Job's own or that of the annotation, and one rank that is beyond it still ends all.
func (f failure) backOffAlone(job *batchv1.JobSpec) {
	if job.BackoffLimitPerIndex != nil {
		return
	}
	if f.limited {
		job.BackoffLimit = new(f.maxRestarts)
	}
	if ptr.Deref(job.CompletionMode, batchv1.IndexedCompletion) != batchv1.IndexedCompletion {
		return
	}
	limit := ptr.Deref(job.BackoffLimit, defaultBackoffLimit)
	job.BackoffLimit, job.BackoffLimitPerIndex, job.MaxFailedIndexes = new(limit), new(limit), new(int32(0))
}
