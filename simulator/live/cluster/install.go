package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/manifests/lifecycle"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// install applies the objects that have to exist before any controller starts: JobSet's CRD, the laboratory's own
// objects, and the chart.
func (c *Cluster) install(ctx context.Context) error {
	crds, err := os.ReadFile(filepath.Join(c.plan.binaries.JobSetManifests, "crd.yaml"))
	if err != nil {
		return fmt.Errorf("reading JobSet's CRD: %w", err)
	}
	if err := c.applyYAML(ctx, crds); err != nil {
		return err
	}
	if err := c.applyYAML(ctx, []byte(driversRole)); err != nil {
		return err
	}
	if c.plan.cliques {
		if err := c.applyYAML(ctx, nvlink.Manifests); err != nil {
			return err
		}
	}
	if err := c.waitForCRDs(ctx); err != nil || c.plan.bare {
		return err
	}
	return c.applyCharted(ctx)
}

// applyYAML applies every document of a YAML stream. Documents that are a component's configuration rather than an
// object of the API server (they have no name) are passed over.
func (c *Cluster) applyYAML(ctx context.Context, content []byte) error {
	return eachObject(content, func(object *unstructured.Unstructured) error { return c.Apply(ctx, object) })
}

// eachObject calls back for the objects of a YAML stream, in order.
func eachObject(content []byte, use func(*unstructured.Unstructured) error) error {
	objects, err := render.Objects(content)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	for _, object := range objects {
		if object.GetName() == "" {
			continue
		}
		if err := use(object); err != nil {
			return err
		}
	}
	return nil
}

// waitForCRDs waits until the API server serves every CRD that was applied.
func (c *Cluster) waitForCRDs(ctx context.Context) error {
	crds := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			list, err := crds.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, fmt.Errorf("listing CRDs: %w", err)
			}
			for i := range list.Items {
				if !lifecycle.Established(&list.Items[i]) {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the CRDs to be served: %w", err)
	}
	return nil
}
