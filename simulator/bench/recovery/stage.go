package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// team is the namespace, large the job that loses nodes.
	team, large = "recovery", "large"
	// priority is the PriorityClass of the large job.
	priority = "recovery-large"
	// small is the size of the gangs beside it.
	small = 5
	// patience limits the wait for pods.
	patience = 5 * time.Minute
	// lost is the key of the taint of a lost node.
	lost = "recovery.lockstep.dev/lost"
)

// stage is a cluster on which a job loses nodes.
type stage struct {
	plan    Plan
	cluster *cluster.Cluster
	pods    *follower
	jobs    []string
}

func newStage(ctx context.Context, c *cluster.Cluster, plan Plan) (*stage, error) {
	_, err := c.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating the namespace: %w", err)
	}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: priority}, Value: 1_001_000}
	if _, err := c.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating the PriorityClass: %w", err)
	}
	if _, err := c.Create(ctx, runtime()); err != nil {
		return nil, fmt.Errorf("creating the runtime: %w", err)
	}
	pods, err := follow(ctx, c.Client, plan.Clock)
	if err != nil {
		return nil, err
	}
	return &stage{plan: plan, cluster: c, pods: pods}, nil
}

// runtime is a TrainingRuntime whose pods run on until they are ended, at once.
func runtime() *unstructured.Unstructured {
	pod := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"simulator.lockstep.dev/run-time": "24h"}},
		"spec": map[string]any{
			"terminationGracePeriodSeconds": int64(0),
			"containers":                    []any{map[string]any{"name": "node", "image": "example.com/torch:1"}},
		},
	}
	node := map[string]any{"name": "node", "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
		"spec":     map[string]any{"template": pod},
	}}
	return trainer("TrainingRuntime", "recovery", nil, map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(2), "torch": map[string]any{}},
		"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{node}}},
	})
}

func trainer(kind, name string, annotations map[string]string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion("trainer.kubeflow.org/v1alpha1")
	object.SetKind(kind)
	object.SetNamespace(team)
	object.SetName(name)
	object.SetAnnotations(annotations)
	return object
}

// submit submits the large job and, if the scene is full, gangs for the other nodes, and waits until all run.
func (s *stage) submit(ctx context.Context, of scene) error {
	annotations := map[string]string{
		topology.AnnotationOnDisruption: of.policy, topology.AnnotationPriorityClass: priority,
	}
	if err := s.job(ctx, large, s.plan.Ranks, annotations); err != nil {
		return err
	}
	if err := s.await(ctx, s.plan.Ranks); err != nil {
		return err
	}
	all := s.plan.Ranks
	if of.full {
		nodes, err := s.cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("counting the nodes: %w", err)
		}
		for i := range (len(nodes.Items) - s.plan.Ranks) / small {
			if err := s.job(ctx, fmt.Sprint("small-", i), small, nil); err != nil {
				return err
			}
			all += small
		}
	}
	return s.await(ctx, all)
}

func (s *stage) job(ctx context.Context, name string, ranks int, annotations map[string]string) error {
	object := trainer("TrainJob", name, annotations, map[string]any{
		"runtimeRef": map[string]any{"kind": "TrainingRuntime", "name": "recovery"},
		"trainer": map[string]any{
			"numNodes":         int64(ranks),
			"resourcesPerNode": map[string]any{"limits": map[string]any{"nvidia.com/gpu": s.plan.Accelerators}},
		},
	})
	if _, err := s.cluster.Create(ctx, object); err != nil {
		return fmt.Errorf("creating TrainJob %s: %w", name, err)
	}
	s.jobs = append(s.jobs, name)
	return nil
}

// runs reports whether a pod has a node and stays there.
func runs(l *life) bool { return !l.bound.IsZero() && l.leaving.IsZero() }

// await waits until so many pods run.
func (s *stage) await(ctx context.Context, pods int) error {
	return s.until(ctx, fmt.Sprintf("%d running pods", pods), func() bool { return s.pods.count(runs) == pods })
}

// settle waits until no pod is pending or terminating, and then drops deleted pods.
func (s *stage) settle(ctx context.Context) error {
	s.plan.Clock.Sleep(time.Second)
	pods := s.plan.Ranks
	for _, job := range s.jobs {
		if job != large {
			pods += small
		}
	}
	if err := s.await(ctx, pods); err != nil {
		return err
	}
	s.pods.forget()
	return nil
}

// clear deletes the jobs and waits until their pods are deleted.
func (s *stage) clear(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	for _, job := range s.jobs {
		err := s.cluster.Dynamic.Resource(resource).Namespace(team).Delete(ctx, job, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting TrainJob %s: %w", job, err)
		}
	}
	s.jobs = nil
	err := s.until(
		ctx,
		"the end of all pods",
		func() bool { return s.pods.count(func(l *life) bool { return !l.gone }) == 0 },
	)
	s.pods.forget()
	return err
}

func (s *stage) until(ctx context.Context, what string, isSo func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return isSo(), nil })
	if err != nil {
		return fmt.Errorf("waiting for %s (%d run): %w", what, s.pods.count(runs), err)
	}
	return nil
}

var errNoRank = errors.New("the rank does not run")

// lose taints the node of a rank until so many ranks that have been made since then run.
func (s *stage) lose(ctx context.Context, rank, want int) (Loss, error) {
	old, ok := s.pods.holder(rank)
	if !ok {
		return Loss{}, errNoRank
	}
	began := s.plan.Clock.Now()
	if err := s.taint(ctx, old.node, `[{"key":"`+lost+`","effect":"NoExecute"}]`); err != nil {
		return Loss{}, err
	}
	again := func(l *life) bool { return l.large && l.made.After(began) && runs(l) }
	if err := s.until(ctx, "the new rank", func() bool { return s.pods.count(again) >= want }); err != nil {
		return Loss{}, err
	}
	loss := s.pods.cost(rank, old.node, began)
	return loss, s.taint(ctx, old.node, "null")
}

// cost derives from the observations the cost of the loss of a rank's node at an instant.
func (f *follower) cost(rank int, node string, began time.Time) Loss {
	f.mu.Lock()
	defer f.mu.Unlock()
	var left, made, bound time.Time
	for _, l := range f.pods {
		switch {
		case !l.large:
		case l.rank == rank && l.node == node && l.leaving.After(began):
			left = l.leaving
		case l.made.After(began):
			if l.rank == rank {
				made = l.made
			}
			if l.bound.After(bound) {
				bound = l.bound
			}
		}
	}
	return Loss{Evicted: left.Sub(began), Made: made.Sub(left), Bound: bound.Sub(made)}
}

// taint replaces the taints of a node.
func (s *stage) taint(ctx context.Context, node, taints string) error {
	patch := []byte(`{"spec":{"taints":` + taints + `}}`)
	if _, err := s.cluster.Client.CoreV1().Nodes().
		Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("tainting node %s: %w", node, err)
	}
	return nil
}
