package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// scene is one cluster on which gangs are made as a user of plain pods makes them, without TrainJobs.
type scene struct {
	client kubernetes.Interface
	clock  clock.Clock
}

func newScene(c *cluster.Cluster, clock clock.Clock) scene { return scene{c.Client, clock} }

// play binds one large gang of single-GPU pods, and then makes gangs of eight whole nodes, for which there is no room left.
func (s scene) play(ctx context.Context, size, waiting int) (figures, error) {
	began := s.clock.Now()
	if err := s.gang(ctx, "large", size, "1"); err != nil {
		return figures{}, err
	}
	err := s.until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).
			List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		if err != nil {
			return false, fmt.Errorf("counting the pods that are bound: %w", err)
		}
		return len(pods.Items) == size, nil
	})
	if err != nil {
		return figures{}, fmt.Errorf("binding the gang: %w", err)
	}
	found := figures{bound: s.clock.Since(began).Seconds()}
	began = s.clock.Now()
	for i := range waiting {
		if err := s.gang(ctx, fmt.Sprintf("waits-%03d", i), 8, "8"); err != nil {
			return figures{}, err
		}
	}
	err = s.until(ctx, func(ctx context.Context) (bool, error) {
		told, err := s.told(ctx)
		return told == waiting, err
	})
	if err != nil {
		return figures{}, fmt.Errorf("telling the gangs that wait: %w", err)
	}
	found.told = s.clock.Since(began).Seconds()
	return found, nil
}

// until asks ten times a second.
func (s scene) until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, done)
	if err != nil {
		return fmt.Errorf("waiting: %w", err)
	}
	return nil
}

// told is how many groups have both conditions of a gang that waits: ours, and kube-scheduler's own.
func (s scene) told(ctx context.Context) (int, error) {
	groups, err := s.client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing groups: %w", err)
	}
	count := 0
	for i := range groups.Items {
		conditions := groups.Items[i].Status.Conditions
		if meta.IsStatusConditionTrue(conditions, standing.Waiting) &&
			meta.IsStatusConditionFalse(conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
			count++
		}
	}
	return count, nil
}

// creators are how many requests are under way at once.
const creators = 16

// gang makes a PodGroup and its pods.
func (s scene) gang(ctx context.Context, name string, size int, gpus string) error {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)},
		}},
	}
	_, err := s.client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).Create(ctx, group, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating PodGroup %s: %w", name, err)
	}
	var workers sync.WaitGroup
	faults := make(chan error, size)
	ranks := make(chan int)
	for range creators {
		workers.Go(func() {
			for rank := range ranks {
				faults <- s.member(ctx, name, rank, gpus)
			}
		})
	}
	for rank := range size {
		ranks <- rank
	}
	close(ranks)
	workers.Wait()
	close(faults)
	for fault := range faults {
		if fault != nil {
			return fault
		}
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
