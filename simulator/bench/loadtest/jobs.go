package loadtest

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
)

const (
	// Clients is the number of clients that create jobs side by side.
	Clients = 20
	// QueriesPerSecond is their common limit.
	QueriesPerSecond = 200
	// RuntimeName is the runtime of the jobs: one node, whose fake pod runs for as long as any measurement.
	RuntimeName = "rush"
)

// Runtime is the ClusterTrainingRuntime of the jobs. Its pods are small, so that a fleet of some dozen nodes holds
// thousands.
func Runtime() *unstructured.Unstructured {
	container := map[string]any{
		"name": "node", "image": "none", "resources": map[string]any{"requests": map[string]any{"cpu": "10m"}},
	}
	pod := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{workload.RunTimeAnnotation: "24h"}},
		"spec":     map[string]any{"containers": []any{container}},
	}
	node := map[string]any{
		"name": "node",
		"template": map[string]any{
			"metadata": map[string]any{
				"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
			},
			"spec": map[string]any{"template": pod},
		},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
		"metadata": map[string]any{
			"name": RuntimeName, "labels": map[string]any{"trainer.kubeflow.org/framework": "torch"},
		},
		"spec": map[string]any{
			"mlPolicy": map[string]any{"numNodes": int64(1), "torch": map[string]any{}},
			"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{node}}},
		},
	}}
}

// Order describes jobs that are created at once.
type Order struct {
	// Namespace exists.
	Namespace string
	// First is the number of the first job and Count the number of jobs.
	First, Count int
	// Gang is "on" or "off".
	Gang string
	// Suspend is spec.suspend.
	Suspend bool
}

func (o Order) name(i int) string { return fmt.Sprintf("rush-%05d", o.First+i) }

func (o Order) job(i int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{
			"name": o.name(i), "namespace": o.Namespace, "annotations": map[string]any{"lockstep.dev/gang": o.Gang},
		},
		"spec": map[string]any{"runtimeRef": map[string]any{"name": RuntimeName}, "suspend": o.Suspend},
	}}
}

func trainJobs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
}

func jobSets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
}

func pods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// create creates the jobs of an order and returns when the API server has them all.
func (f Field) create(ctx context.Context, order Order) error {
	jobs := f.Dynamic.Resource(trainJobs()).Namespace(order.Namespace)
	return each(ctx, order.Count, func(ctx context.Context, i int) error {
		if _, err := jobs.Create(ctx, order.job(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating TrainJob %s: %w", order.name(i), err)
		}
		return nil
	})
}

// resume lets the jobs of an order run.
func (f Field) resume(ctx context.Context, order Order) error {
	return f.patchEach(ctx, trainJobs(), order, `{"spec":{"suspend":false}}`)
}

// touch changes an annotation of the JobSets of an order, so that each of its jobs is reconciled without a change.
func (f Field) touch(ctx context.Context, order Order, round int) error {
	return f.patchEach(ctx, jobSets(), order,
		fmt.Sprintf(`{"metadata":{"annotations":{"simulator.lockstep.dev/touched":"%d"}}}`, round))
}

func (f Field) patchEach(ctx context.Context, resource schema.GroupVersionResource, order Order, patch string) error {
	objects := f.Dynamic.Resource(resource).Namespace(order.Namespace)
	return each(ctx, order.Count, func(ctx context.Context, i int) error {
		_, err := objects.Patch(ctx, order.name(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("patching %s %s: %w", resource.Resource, order.name(i), err)
		}
		return nil
	})
}

// each does something count times, by as many clients as a load test has, until one of them fails.
func each(parent context.Context, count int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	numbers := make(chan int)
	var clients sync.WaitGroup
	for range min(Clients, count) {
		clients.Go(func() {
			for i := range numbers {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range count {
		if ctx.Err() != nil {
			break
		}
		numbers <- i
	}
	close(numbers)
	clients.Wait()
	return context.Cause(ctx)
}
