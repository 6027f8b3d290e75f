// Package failures reports the first rank of a gang that failed, on the gang's PodGroup: its name, its node, its exit
// code and its last words.
//
// The controller of TrainJobs shows it to users. It has no right to read pods, and when it notices that a Job has
// failed, the pods are being deleted.
package failures

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// gathers is the time after which the first report about a gang is corrected: peers of a failed rank fail in the same
// second, and their pods may arrive earlier. The first failure is reported at once, since a job that has failed for
// good loses its PodGroup soon.
const gathers = time.Second

// longestMessage limits the reported part of a container's log in bytes.
const longestMessage = 800

// reporter writes reports for the gangs of one profile.
type reporter struct {
	client kubernetes.Interface
	groups schedulinglisters.PodGroupLister
	acts   func() bool
	timing timing.Timing

	mu sync.Mutex
	// gathered are the failures that are not reported yet, by gang.
	gathered map[types.NamespacedName][]*corev1.Pod
}

// Report reports failures until the context ends, while acts says that this scheduler decides.
func Report(ctx context.Context, handle fwk.Handle, ended *members.Ended, acts func() bool, t timing.Timing) error {
	r := &reporter{
		client: handle.ClientSet(), groups: handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Lister(),
		acts: acts, timing: t, gathered: make(map[types.NamespacedName][]*corev1.Pod),
	}
	if err := ended.Follow(ctx, handle, func(pod *corev1.Pod) { r.ended(ctx, pod) }); err != nil {
		return fmt.Errorf("following failed ranks: %w", err)
	}
	return nil
}

// ended gathers a pod that failed by itself. One that is being deleted, or was evicted, failed because of that; it is
// reported only if its gang ran out of time.
func (r *reporter) ended(ctx context.Context, pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Status.Phase != corev1.PodFailed || eviction.Disrupted(pod) || !r.acts() ||
		pod.DeletionTimestamp != nil && !r.outOfTime(key, pod) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.gathered[key]) == 0 {
		r.timing.Beside(func() { r.report(ctx, key, []*corev1.Pod{pod}, nil) })
		r.timing.AfterFunc(gathers, func() { r.correct(ctx, key) })
	}
	r.gathered[key] = append(r.gathered[key], pod)
}

// skew is the tolerated difference between the clocks of controller and scheduler.
const skew = 5 * time.Second

// outOfTime reports whether a pod that is being deleted has last words, and its gang was to end before. At its deadline
// a job's pods are deleted at once, and their last words are all that is left of their logs.
func (r *reporter) outOfTime(gang types.NamespacedName, pod *corev1.Pod) bool {
	group, err := r.groups.PodGroups(gang.Namespace).Get(gang.Name)
	if err != nil {
		return false
	}
	end := snapshot.ExpectedEnd(group)
	if end.IsZero() || r.timing.Clock.Now().Before(end.Add(-skew)) {
		return false
	}
	failure, _ := failureOf(pod)
	return failure.Message != ""
}

// correct reports a failure that was earlier than the one that arrived first.
func (r *reporter) correct(ctx context.Context, gang types.NamespacedName) {
	r.mu.Lock()
	failed := r.gathered[gang]
	delete(r.gathered, gang)
	r.mu.Unlock()
	if len(failed) > 1 {
		r.report(ctx, gang, failed, failed[:1])
	}
}

// report writes the first failure of some pods, unless it is that of those that were reported.
func (r *reporter) report(ctx context.Context, gang types.NamespacedName, failed, reported []*corev1.Pod) {
	group, err := r.groups.PodGroups(gang.Namespace).Get(gang.Name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil {
		return
	}
	failure, at := First(failed)
	if len(reported) > 0 {
		if before, _ := First(reported); before == failure {
			return
		}
	}
	logger := klog.FromContext(ctx).WithValues("podGroup", gang)
	logger.Info("Rank failed", "failure", failure.String())
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": group.UID},
		"status": map[string]any{"conditions": []metav1.Condition{
			{
				Type:               standing.RankFailed,
				Status:             metav1.ConditionTrue,
				Reason:             cmp.Or(failure.Reason, "Failed"),
				Message:            failure.String(),
				ObservedGeneration: group.Generation,
				LastTransitionTime: at,
			},
		}},
	})
	if err != nil {
		logger.Error(err, "Encoding the failure of a rank")
		return
	}
	_, err = r.client.SchedulingV1beta1().PodGroups(gang.Namespace).Patch(
		ctx, gang.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		logger.Error(err, "Reporting the failure of a rank")
	}
}

// First returns the earliest of the failures of some pods, of the lowest rank among those of the same instant, and its
// time. There must be one pod.
func First(pods []*corev1.Pod) (standing.Failure, metav1.Time) {
	type failure struct {
		standing.Failure

		at metav1.Time
	}
	var all []failure
	for _, pod := range pods {
		of, at := failureOf(pod)
		all = append(all, failure{of, at})
	}
	first := slices.MinFunc(all, func(a, b failure) int {
		return cmp.Or(a.at.Compare(b.at.Time), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Pod, b.Pod))
	})
	return first.Failure, first.at
}

// failureOf returns the failure of a pod: of its first container that failed, or of itself if none did.
func failureOf(pod *corev1.Pod) (standing.Failure, metav1.Time) {
	failure := standing.Failure{
		Rank: snapshot.CompletionIndex(pod), Pod: pod.Name, Node: pod.Spec.NodeName, Reason: wordOf(pod.Status.Reason),
		Message: lastWords(pod.Status.Message),
	}
	at := pod.CreationTimestamp
	var first *corev1.ContainerStateTerminated
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 || first != nil && !ended.FinishedAt.Before(&first.FinishedAt) {
			continue
		}
		first = ended
		failure.Container, failure.ExitCode = status.Name, ended.ExitCode
		failure.Reason, failure.Message = wordOf(ended.Reason), lastWords(ended.Message)
	}
	if first != nil && !first.FinishedAt.IsZero() {
		at = first.FinishedAt
	}
	return failure, at
}

// wordOf returns a reason that a condition may have, "" for any other text.
func wordOf(reason string) string {
	fits := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
	}
	if reason == "" || reason[0] < 'A' || reason[0] > 'Z' ||
		strings.ContainsFunc(reason, func(c rune) bool { return !fits(c) }) {
		return ""
	}
	return reason
}

// lastWords returns the end of a text: whole lines if there is one that is short enough.
func lastWords(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	if len(text) <= longestMessage {
		return text
	}
	text = text[len(text)-longestMessage:]
	if _, lines, ok := strings.Cut(text, "\n"); ok {
		return strings.TrimSpace(lines)
	}
	for !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
