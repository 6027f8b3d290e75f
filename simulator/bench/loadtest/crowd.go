package loadtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// longestBehind is the longest, in seconds, that a tenant's first job may wait for its JobSet: namespaces take turns.
const longestBehind = 5.0

// errCrowdedOut is the judgment of a crowd that delayed others too much.
var errCrowdedOut = errors.New("a crowd delayed another tenant")

// Crowd holds the waits of tenants with one job each for its JobSet behind a tenant that has created many at once.
type Crowd struct {
	// Jobs is the number that the one has created.
	Jobs int `json:"jobs"`
	// Ahead is the number of those without a JobSet when each of the others created his job.
	Ahead []int `json:"ahead"`
	// Delays are the times until that had one, in seconds.
	Delays []float64 `json:"delays_seconds"`
}

// Worst is the longest of the delays, in seconds.
func (c Crowd) Worst() float64 { return slices.Max(c.Delays) }

// Judge returns an error if a job of another tenant waited too long.
func (c Crowd) Judge() error {
	if worst := c.Worst(); worst > longestBehind {
		return fmt.Errorf("%w: behind %d jobs a JobSet was created after %.1f s; at most %.0f",
			errCrowdedOut, c.Jobs, worst, longestBehind)
	}
	return nil
}

// Behind creates the jobs of an order, and then a job in each of several namespaces, which it makes: each when the one
// before has its JobSet.
func (f Field) Behind(ctx context.Context, order Order, neighbors int) (Crowd, error) {
	crowd := Crowd{Jobs: order.Count}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counts, err := f.follow(ctx, order.Namespace, order.Count)
	if err != nil {
		return crowd, err
	}
	if err := f.create(ctx, order); err != nil {
		return crowd, err
	}
	for i := range neighbors {
		one := Order{Namespace: fmt.Sprintf("neighbor-%d", i), Count: 1, Gang: order.Gang, Suspend: order.Suspend}
		crowd.Ahead = append(crowd.Ahead, counts.made.missing())
		delay, err := f.visit(ctx, one)
		if err != nil {
			return crowd, err
		}
		crowd.Delays = append(crowd.Delays, delay)
	}
	f.Progress(
		fmt.Sprintf("behind %d jobs, of which %v were ahead: %.2f s at most", crowd.Jobs, crowd.Ahead, crowd.Worst()),
	)
	return crowd, nil
}

// visit makes a namespace, creates the one job of an order there, and returns the seconds until it had its JobSet.
func (f Field) visit(ctx context.Context, one Order) (float64, error) {
	space := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": one.Namespace},
	}}
	spaces := f.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, err := spaces.Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("creating namespace %s: %w", one.Namespace, err)
	}
	counts, err := f.follow(ctx, one.Namespace, one.Count)
	if err != nil {
		return 0, err
	}
	start := f.Clock.Now()
	if err := f.create(ctx, one); err != nil {
		return 0, err
	}
	return f.since(ctx, start, counts.made, "JobSets")
}
