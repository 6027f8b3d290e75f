package recovery

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// life holds the observations of one pod, with their times.
type life struct {
	rank                 int
	large                bool
	node                 string
	made, bound, leaving time.Time
	gone                 bool
}

// follower notes when pods are made, bound and leave, as a watcher sees it.
type follower struct {
	clock clock.Clock

	mu   sync.Mutex
	pods map[types.UID]*life
}

// follow watches the pods of the namespace until the context ends.
func follow(ctx context.Context, client kubernetes.Interface, c clock.Clock) (*follower, error) {
	f := &follower{clock: c, pods: make(map[types.UID]*life)}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(team))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.see,
		UpdateFunc: func(_, now any) { f.see(now) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			f.end(obj)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching the pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, nil
}

func (f *follower) see(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.pods[pod.UID]
	if l == nil {
		rank, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation])
		l = &life{rank: rank, large: err == nil && pod.Labels["jobset.sigs.k8s.io/jobset-name"] == large, made: now}
		f.pods[pod.UID] = l
	}
	if l.node = pod.Spec.NodeName; l.node != "" && l.bound.IsZero() {
		l.bound = now
	}
	if l.leaving.IsZero() && (pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed) {
		l.leaving = now
	}
}

func (f *follower) end(obj any) {
	f.see(obj)
	if pod, ok := obj.(*corev1.Pod); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		l := f.pods[pod.UID]
		if l.gone = true; l.leaving.IsZero() {
			l.leaving = f.clock.Now()
		}
	}
}

// count counts the pods that satisfy a condition.
func (f *follower) count(isSo func(*life) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, l := range f.pods {
		if isSo(l) {
			n++
		}
	}
	return n
}

// holder returns the observed life of the pod that currently has the rank of the large job.
func (f *follower) holder(rank int) (life, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.pods {
		if l.large && l.rank == rank && l.leaving.IsZero() {
			return *l, true
		}
	}
	return life{}, false
}

// forget drops deleted pods.
func (f *follower) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, l := range f.pods {
		if l.gone {
			delete(f.pods, uid)
		}
	}
}
