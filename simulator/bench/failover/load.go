package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

const (
	// members is the size of all gangs.
	members = 4
	// runs is the run time of a gang of the stream.
	runs = 5 * time.Second
	// creators make the gangs that are there from the beginning.
	creators = 16
	// patience limits the wait for a gang to be bound.
	patience = 2 * time.Minute
	// team is the namespace.
	team = "load"
)

// load is a stream of short gangs, and the instants at which their members were bound.
type load struct {
	client kubernetes.Interface
	clock  clock.Clock

	mu    sync.Mutex
	bound []time.Time
}

// newLoad makes the gangs that stay, waits until those have their nodes that can, and opens the stream. It flows until
// ctx ends.
func newLoad(ctx context.Context, c *cluster.Cluster, plan Plan) (*load, error) {
	l := &load{client: c.Client, clock: plan.Clock}
	_, err := l.client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating the namespace: %w", err)
	}
	if err := l.follow(ctx); err != nil {
		return nil, err
	}
	var making errgroup.Group
	making.SetLimit(creators)
	for i := range plan.Running {
		making.Go(func() error { return l.gang(ctx, fmt.Sprintf("runs-%d", i), "1") })
	}
	for i := range plan.Waiting {
		making.Go(func() error { return l.gang(ctx, fmt.Sprintf("waits-%d", i), "1000") })
	}
	if err := making.Wait(); err != nil {
		return nil, fmt.Errorf("making gangs: %w", err)
	}
	if err := l.until(ctx, func(all []time.Time) bool { return len(all) >= members*plan.Running }); err != nil {
		return nil, fmt.Errorf("binding the gangs that stay: %w", err)
	}
	go l.flow(ctx, plan.Every)
	return l, nil
}

// follow notes when each pod got its node, until ctx ends.
func (l *load) follow(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(l.client, 0, informers.WithNamespace(team))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) {
			before, known := old.(*corev1.Pod)
			if pod, ok := now.(*corev1.Pod); ok && known && before.Spec.NodeName == "" && pod.Spec.NodeName != "" {
				l.mu.Lock()
				l.bound = append(l.bound, l.clock.Now())
				l.mu.Unlock()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching the pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// flow submits one gang every so often, and deletes it when it has run.
func (l *load) flow(ctx context.Context, every time.Duration) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("flows-%d", i)
		if err := l.gang(ctx, name, "1"); err != nil {
			continue // the API server says no to others than the schedulers only when everything ends
		}
		go func() {
			l.clock.Sleep(runs)
			for l.end(ctx, name) != nil && ctx.Err() == nil {
				l.clock.Sleep(time.Second)
			}
		}()
		l.clock.Sleep(every)
	}
}

// gang makes a group and its members, which request that many CPUs each.
func (l *load) gang(ctx context.Context, name, cpus string) error {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: members},
		}},
	}
	if _, err := l.client.SchedulingV1beta1().PodGroups(team).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating PodGroup %s: %w", name, err)
	}
	for rank := range members {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: team,
				Name:      fmt.Sprintf("%s-%d", name, rank),
				Labels:    map[string]string{"gang": name},
			},
			Spec: corev1.PodSpec{
				SchedulerName:                 "lockstep-scheduler",
				RestartPolicy:                 corev1.RestartPolicyNever,
				TerminationGracePeriodSeconds: new(int64(0)),
				Containers: []corev1.Container{
					{
						Name:  "main",
						Image: "train",
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)},
						},
					},
				},
			},
		}
		gangapi.Join(&pod.ObjectMeta, &pod.Spec, name)
		if _, err := l.client.CoreV1().Pods(team).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// end deletes a gang, unless some member still waits.
func (l *load) end(ctx context.Context, name string) error {
	pods, err := l.client.CoreV1().Pods(team).List(ctx, metav1.ListOptions{LabelSelector: "gang=" + name})
	if err != nil {
		return fmt.Errorf("listing the members of %s: %w", name, err)
	}
	if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" }) {
		return fmt.Errorf("%s still waits", name)
	}
	for _, pod := range pods.Items {
		if err := l.client.CoreV1().
			Pods(team).
			Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s: %w", pod.Name, err)
		}
	}
	err = l.client.SchedulingV1beta1().PodGroups(team).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting PodGroup %s: %w", name, err)
	}
	return nil
}

// gap has something happen, and returns the longest time without a binding from then on, until the stream has flowed
// for a while undisturbed.
func (l *load) gap(ctx context.Context, undisturbed time.Duration, happens func() error) (time.Duration, error) {
	began := l.clock.Now()
	if err := happens(); err != nil {
		return 0, err
	}
	done := l.clock.Now()
	quiet := func(all []time.Time) bool {
		return len(all) > 0 && all[len(all)-1].Sub(done) > undisturbed
	}
	if err := l.until(ctx, quiet); err != nil {
		return 0, fmt.Errorf("waiting for bindings afterwards: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := time.Duration(0)
	for i := 1; i < len(l.bound); i++ {
		if l.bound[i].After(began) {
			longest = max(longest, l.bound[i].Sub(l.bound[i-1]))
		}
	}
	return longest, nil
}

// until waits until the instants of all bindings so far are as they should be.
func (l *load) until(ctx context.Context, holds func([]time.Time) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return holds(l.bound), nil
	})
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Errorf("%d pods are bound: %w", len(l.bound), err)
	}
	return nil
}
