package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// scene is one cluster on which gangs are made as the controller makes them of TrainJobs, or as users make them of
// plain pods.
type scene struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	clock   clock.Clock
	// finalizers are those that the controller gives to a PodGroup that is a custom resource. Groups that users make
	// get it from the scheduler, in one more request; native groups get theirs from the API server.
	finalizers []string
}

func newScene(c *cluster.Cluster, clock clock.Clock, finalizers []string) scene {
	return scene{cluster: c, client: c.Client, clock: clock, finalizers: finalizers}
}

// play binds one large gang of single-GPU pods, and then makes gangs of eight whole nodes, for which there is no room
// left.
func (s scene) play(ctx context.Context, size, waiting int) (figures, error) {
	pods := s.client.CoreV1().Pods(metav1.NamespaceDefault)
	all := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: pods.Watch,
	}
	bound := s.whenAll(ctx, size, &corev1.Pod{}, isBound, all)
	running := s.whenAll(ctx, size, &corev1.Pod{}, isRunning, all)
	began := s.clock.Now()
	if err := s.gang(ctx, "large", size, "1"); err != nil {
		return figures{}, err
	}
	if err := <-bound; err != nil {
		return figures{}, fmt.Errorf("binding the gang: %w", err)
	}
	found := figures{bound: s.clock.Since(began).Seconds()}
	if err := <-running; err != nil { // else the remaining work of the faster mode counts against its second figure
		return figures{}, fmt.Errorf("starting the gang: %w", err)
	}
	groups := s.client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault)
	told := s.whenAll(ctx, waiting, &schedulingv1beta1.PodGroup{}, isTold, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return groups.List(ctx, options)
		},
		WatchFuncWithContext: groups.Watch,
	})
	began = s.clock.Now()
	if err := each(waiting, users, func(i int) error {
		return s.gang(ctx, fmt.Sprintf("waits-%03d", i), 8, "8")
	}); err != nil {
		return figures{}, err
	}
	if err := <-told; err != nil {
		return figures{}, fmt.Errorf("telling the gangs that wait: %w", err)
	}
	found.told = s.clock.Since(began).Seconds()
	return found, nil
}

// clear deletes everything, and returns when nothing is left.
func (s scene) clear(ctx context.Context) error {
	at := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	pods := s.client.CoreV1().Pods(metav1.NamespaceDefault)
	if err := pods.DeleteCollection(ctx, at, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	groups := s.client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault)
	if err := groups.DeleteCollection(ctx, at, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting groups: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		left, err := groups.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, fmt.Errorf("listing groups: %w", err)
		}
		return len(left.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until all groups are gone: %w", err)
	}
	return nil
}

// whenAll returns a channel that gets nil once as many objects as are wanted are as they should be, or why that was not
// seen. Following objects costs the API server the same in both modes, and less than asking again and again.
func (s scene) whenAll(
	ctx context.Context, wanted int, kind runtime.Object, fits func(runtime.Object) bool, objects *cache.ListWatch,
) <-chan error {
	done := make(chan error, 1)
	names := sets.New[string]()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := watchtools.UntilWithSync(ctx, objects, kind, nil, func(change watch.Event) (bool, error) {
			object, err := meta.Accessor(change.Object)
			if err == nil && fits(change.Object) {
				names.Insert(object.GetName())
			}
			return names.Len() == wanted, nil
		})
		done <- err
	}()
	return done
}

func isBound(object runtime.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && pod.Spec.NodeName != ""
}

func isRunning(object runtime.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && pod.Status.Phase == corev1.PodRunning
}

// isTold says that a group has both conditions of a gang that waits: ours, and kube-scheduler's own.
func isTold(object runtime.Object) bool {
	group, ok := object.(*schedulingv1beta1.PodGroup)
	return ok && meta.IsStatusConditionTrue(group.Status.Conditions, standing.Waiting) &&
		meta.IsStatusConditionFalse(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
}

// users make gangs that wait at once; a gang's pods are made by as many creators at once.
const (
	users    = 16
	creators = 16
)

// gang makes a PodGroup and its pods.
func (s scene) gang(ctx context.Context, name string, size int, gpus string) error {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: s.finalizers},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)},
		}},
	}
	_, err := s.client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).Create(ctx, group, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating PodGroup %s: %w", name, err)
	}
	return each(size, creators, func(rank int) error { return s.member(ctx, name, rank, gpus) })
}

// each does something for 0 to n-1, at most limit at once, and returns the first error.
func each(n, limit int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("making gangs: %w", err)
	}
	return nil
}

// member makes one pod of a gang.
func (s scene) member(ctx context.Context, gang string, rank int, gpus string) error {
	asks := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("%s-%d", gang, rank),
			Labels: map[string]string{"batch.kubernetes.io/job-completion-index": strconv.Itoa(rank)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "lockstep-scheduler",
			Containers: []corev1.Container{
				{
					Name:      "main",
					Image:     "example.com/train:1",
					Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
				},
			},
		},
	}
	gangapi.Join(&pod.ObjectMeta, &pod.Spec, gang)
	if _, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	return nil
}
