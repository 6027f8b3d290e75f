package fakecluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

const (
	// jobLag is the delay of the Job controller, firstBackoff and longestBackoff bound its pause before a failed pod is
	// made again.
	jobLag         = 100 * time.Millisecond
	firstBackoff   = 10 * time.Second
	longestBackoff = 10 * time.Minute
)

// jobs is the Job controller, for Indexed Jobs with restartPolicy Never.
type jobs struct {
	World

	due map[types.NamespacedName]bool
	// failures are those of a Job without a success between them.
	failures map[types.UID]*streak
	// indexFailures are those of each index.
	indexFailures map[indexed]*streak
}

// indexed is an index of a Job.
type indexed struct {
	job types.UID
	at  int
}

type streak struct {
	count int
	last  time.Time
}

// longer is the streak with one more failure. A nil streak is that of a Job without.
func (s *streak) longer(now time.Time) *streak {
	if s == nil {
		s = &streak{}
	}
	return &streak{s.count + 1, now}
}

// left returns the rest of the pause before failed pods are made again.
func (s *streak) left(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	pause := firstBackoff
	for range s.count - 1 {
		pause = min(2*pause, longestBackoff)
	}
	return s.last.Add(pause).Sub(now)
}

func (j *jobs) changed(e apiserver.Event) {
	o := e.New
	if o == nil {
		o = e.Old
	}
	switch e.Kind {
	case "Job":
		j.soon(client.ObjectKeyFromObject(o))
	case "Pod":
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Job" {
			j.soon(types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name})
		}
	}
}

func (j *jobs) soon(name types.NamespacedName) { j.in(name, j.Delay(jobLag, "job", name.String())) }

func (j *jobs) in(name types.NamespacedName, d time.Duration) {
	if d <= 2*jobLag {
		if j.due[name] {
			return
		}
		j.due[name] = true
	}
	j.After(d, func() {
		delete(j.due, name)
		j.sync(name)
	})
}

// state sums up a Job's pods.
type state struct {
	job *batchv1.Job
	// active have not ended, ending is the number of them that are being deleted, ready that of the ready ones.
	active        map[int]*corev1.Pod
	ending, ready int
	// succeeded are the indexes that are done, failed those that are not made again.
	succeeded, failed map[int]bool
	// verdict is the reason for which the Job fails; "" if it does not.
	verdict, why string
}

func (j *jobs) sync(name types.NamespacedName) {
	found, err := j.Server.Get("Job", name)
	job, ok := found.(*batchv1.Job)
	if err != nil || !ok {
		j.release(name)
		return
	}
	if finished(job) {
		j.deletePods(j.podsOf(job))
		return
	}
	s := j.look(job.DeepCopy())
	s.giveUp()
	j.decide(s)
	if job.DeletionTimestamp == nil && s.verdict == "" && !isTrue(job.Spec.Suspend) &&
		len(s.succeeded) < completions(job) {
		j.create(s)
	}
	j.status(s)
}

// release removes the tracking finalizer from the pods of a deleted Job.
func (j *jobs) release(name types.NamespacedName) {
	for _, o := range j.Server.List("Pod", name.Namespace) {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != "Job" || owner.Name != name.Name {
			continue
		}
		j.untrack(o)
	}
}

func (j *jobs) untrack(o client.Object) {
	if !slices.Contains(o.GetFinalizers(), batchv1.JobTrackingFinalizer) {
		return
	}
	next, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return
	}
	next.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool {
		return f == batchv1.JobTrackingFinalizer
	}))
	_, err := j.Server.Update(next, "")
	must(err)
}

func (j *jobs) podsOf(job *batchv1.Job) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, o := range j.Server.List("Pod", job.Namespace) {
		if pod, ok := o.(*corev1.Pod); ok && ownership.Controls(job, batchv1.SchemeGroupVersion.WithKind("Job"), pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (j *jobs) deletePods(pods []*corev1.Pod) {
	for _, pod := range pods {
		switch {
		case !snapshot.Ended(pod) && pod.DeletionTimestamp == nil:
			must(j.Server.Delete("Pod", client.ObjectKeyFromObject(pod), metav1.DeleteOptions{}))
		case snapshot.Ended(pod):
			j.untrack(pod)
		}
	}
}

// look counts the pods that have ended since, and collects the remaining ones.
func (j *jobs) look(job *batchv1.Job) *state {
	s := &state{
		job: job, active: make(map[int]*corev1.Pod), succeeded: indexes(job.Status.CompletedIndexes),
		failed: indexes(ptr.Deref(job.Status.FailedIndexes, "")),
	}
	maps.DeleteFunc(s.succeeded, func(at int, _ bool) bool { return at >= completions(job) })
	if s.verdict = targetOf(job); s.verdict != "" {
		s.why = messageOf(job)
	}
	for _, pod := range j.podsOf(job) {
		at := indexOf(pod)
		counted := !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
		switch {
		case counted:
		case at >= completions(job): // the Job has been scaled down
			if j.deletePods([]*corev1.Pod{pod}); pod.DeletionTimestamp != nil && !snapshot.Ended(pod) {
				j.untrack(pod)
			}
		case pod.Status.Phase == corev1.PodSucceeded:
			s.succeeded[at] = true
			delete(j.failures, job.UID)
			j.untrack(pod)
		case pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil && job.Spec.PodFailurePolicy == nil:
			j.fails(s, pod)
			j.untrack(pod)
		default:
			s.active[at] = pod
			if pod.DeletionTimestamp != nil {
				s.ending++
			} else if isReady(pod) {
				s.ready++
			}
		}
	}
	return s
}

// fails judges a pod that failed.
func (j *jobs) fails(s *state, pod *corev1.Pod) {
	action, why := judge(s.job.Spec.PodFailurePolicy, pod)
	if action == batchv1.PodFailurePolicyActionIgnore || isTrue(s.job.Spec.Suspend) {
		return
	}
	s.job.Status.Failed++
	index := indexed{s.job.UID, indexOf(pod)}
	j.failures[s.job.UID] = j.failures[s.job.UID].longer(j.Now())
	j.indexFailures[index] = j.indexFailures[index].longer(j.Now())
	if limit := s.job.Spec.BackoffLimitPerIndex; limit != nil && j.indexFailures[index].count > int(*limit) {
		s.failed[index.at] = true
	}
	switch {
	case s.verdict != "":
	case action == batchv1.PodFailurePolicyActionFailJob:
		s.verdict, s.why = batchv1.JobReasonPodFailurePolicy, why
	case s.job.Spec.BackoffLimit != nil && s.job.Status.Failed > *s.job.Spec.BackoffLimit:
		s.verdict, s.why = batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	}
}

// judge is the action of the first rule that matches, and a message that names it.
func judge(policy *batchv1.PodFailurePolicy, pod *corev1.Pod) (batchv1.PodFailurePolicyAction, string) {
	if policy == nil {
		return batchv1.PodFailurePolicyActionCount, ""
	}
	for i, rule := range policy.Rules {
		if codes := rule.OnExitCodes; codes != nil {
			if name, code, ok := exitOf(pod, codes); ok {
				return rule.Action, fmt.Sprintf(
					"Container %s for pod %s/%s failed with exit code %d matching %s rule at index %d",
					name,
					pod.Namespace,
					pod.Name,
					code,
					rule.Action,
					i,
				)
			}
			continue
		}
		for _, want := range rule.OnPodConditions {
			for _, has := range pod.Status.Conditions {
				if has.Type == want.Type && has.Status == want.Status {
					return rule.Action, fmt.Sprintf("Pod %s/%s has condition %s matching %s rule at index %d",
						pod.Namespace, pod.Name, has.Type, rule.Action, i)
				}
			}
		}
	}
	return batchv1.PodFailurePolicyActionCount, ""
}

func exitOf(pod *corev1.Pod, codes *batchv1.PodFailurePolicyOnExitCodesRequirement) (string, int32, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		end := c.State.Terminated
		if end == nil || end.ExitCode == 0 || codes.ContainerName != nil && *codes.ContainerName != c.Name {
			continue
		}
		if slices.Contains(codes.Values, end.ExitCode) == (codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
			return c.Name, end.ExitCode, true
		}
	}
	return "", 0, false
}

// giveUp fails a Job with more failed indexes than it may have, or with only failed ones left.
func (s *state) giveUp() {
	most := s.job.Spec.MaxFailedIndexes
	switch {
	case s.verdict != "" || len(s.failed) == 0:
	case most != nil && len(s.failed) > int(*most):
		s.verdict, s.why = batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes"
	case len(s.failed)+len(s.succeeded) >= completions(s.job):
		s.verdict, s.why = batchv1.JobReasonFailedIndexes, "Job has failed indexes"
	}
}

// decide ends the pods of a Job that is suspended, or that fails.
func (j *jobs) decide(s *state) {
	if s.verdict == "" && !isTrue(s.job.Spec.Suspend) {
		return
	}
	for _, at := range slices.Sorted(keys(s.active)) {
		pod := s.active[at]
		if pod.DeletionTimestamp != nil {
			continue
		}
		must(j.Server.Delete("Pod", client.ObjectKeyFromObject(pod), metav1.DeleteOptions{}))
		s.ending++
		if isReady(pod) {
			s.ready--
		}
	}
}

// create makes the pods that are missing, those that failed after a pause: of the Job, or of their index if those have
// limits of their own.
func (j *jobs) create(s *state) {
	name, alone := client.ObjectKeyFromObject(s.job), s.job.Spec.BackoffLimitPerIndex != nil
	if left := j.failures[s.job.UID].left(j.Now()); left > 0 && !alone {
		j.in(name, left+2*jobLag)
		return
	}
	for at := range completions(s.job) {
		if s.active[at] != nil || s.succeeded[at] || s.failed[at] {
			continue
		}
		if left := j.indexFailures[indexed{s.job.UID, at}].left(j.Now()); left > 0 && alone {
			j.in(name, left+2*jobLag)
			continue
		}
		made, err := j.Server.Create(podFor(s.job, at))
		must(err)
		s.active[at], _ = made.(*corev1.Pod)
	}
}

// podFor is the pod of an index.
func podFor(job *batchv1.Job, at int) *corev1.Pod {
	text := strconv.Itoa(at)
	t := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Namespace, pod.GenerateName = job.Namespace, job.Name+"-"+text+"-"
	if pod.Labels == nil {
		pod.Labels = make(map[string]string)
	}
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	pod.Labels[batchv1.ControllerUidLabel], pod.Labels[batchv1.JobNameLabel] = string(job.UID), job.Name
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = text
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	pod.Spec.Hostname = job.Name + "-" + text
	return pod
}
