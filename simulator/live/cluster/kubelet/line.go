package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// line returns the log of a container.
func line(pod *corev1.Pod, container string) string {
	return fmt.Sprintf("simulated: %s on node %s, container %s: no program was started\n",
		member(pod), pod.Spec.NodeName, container)
}

// member names a pod by its rank in the replicated job of its JobSet, or else by its name.
func member(pod *corev1.Pod) string {
	rank := cmp.Or(
		pod.Annotations[batchv1.JobCompletionIndexAnnotation], pod.Labels[batchv1.JobCompletionIndexAnnotation],
	)
	job := pod.Labels[jobsetv1alpha2.JobSetNameKey]
	if rank == "" || job == "" {
		return fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name)
	}
	return fmt.Sprintf("rank %s of %s in job %s/%s",
		rank, pod.Labels[jobsetv1alpha2.ReplicatedJobNameKey], pod.Namespace, job)
}

// selected applies the options to a log of one line, which was written when its container started.
func (k *Kubelet) selected(log string, written time.Time, options corev1.PodLogOptions) string {
	since := time.Time{}
	if options.SinceTime != nil {
		since = options.SinceTime.Time
	}
	if options.SinceSeconds != nil {
		since = k.clock.Now().Add(-time.Duration(*options.SinceSeconds) * time.Second)
	}
	if options.TailLines != nil && *options.TailLines == 0 || written.Before(since) {
		return ""
	}
	if options.Timestamps {
		log = written.UTC().Format(time.RFC3339Nano) + " " + log
	}
	if limit := options.LimitBytes; limit != nil && *limit < int64(len(log)) {
		log = log[:max(*limit, 0)]
	}
	return log
}

// await returns when a container has ended, its pod is deleted, or ctx ends.
func (k *Kubelet) await(ctx context.Context, pod *corev1.Pod, container string) {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String()
	pods := k.client.CoreV1().Pods(pod.Namespace)
	_, _ = watchtools.UntilWithSync(ctx, cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return pods.Watch(ctx, options)
		},
	}, k.client), &corev1.Pod{}, func(store cache.Store) (bool, error) {
		return len(store.List()) == 0, nil // deleted before the watch began
	}, func(event watch.Event) (bool, error) {
		now, isPod := event.Object.(*corev1.Pod)
		return !isPod || event.Type == watch.Deleted || now.UID != pod.UID || ended(now, container), nil
	}) // an error is the end of ctx: the client has left
}

// ended reports whether a container runs no more.
func ended(pod *corev1.Pod, container string) bool {
	status := statusOf(pod, container)
	return status != nil && status.State.Terminated != nil ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
