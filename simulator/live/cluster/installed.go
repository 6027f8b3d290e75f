package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// RunInstalled runs processes in place of the pods of Lockstep's Deployments as they are in the cluster, and ends those
// that run in their place before. It returns when they are ready.
func (c *Cluster) RunInstalled(ctx context.Context) error {
	var objects []*unstructured.Unstructured
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Version: "v1", Resource: "configmaps"},
	} {
		list, err := c.Dynamic.Resource(resource).Namespace(render.Default().Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("reading what is installed: %w", err)
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	planned, err := c.plan.hostAll(objects)
	if err != nil {
		return err
	}
	c.plan = planned
	c.StopInstalled(ctx)
	if err := c.run(ctx, c.plan.controller(), c.plan.scheduler()); err != nil {
		return err
	}
	return c.reportReady(ctx, objects)
}

// reportReady sets the status of Deployments to all pods ready, since processes stand for the pods: no controller of
// Deployments runs.
func (c *Cluster) reportReady(ctx context.Context, objects []*unstructured.Unstructured) error {
	deployments := c.Dynamic.Resource(
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
	)
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if err != nil {
			return fmt.Errorf("reading the replicas of %s: %w", object.GetName(), err)
		}
		patch := fmt.Sprintf(
			`{"status":{"observedGeneration":%d,"replicas":%[2]d,"updatedReplicas":%[2]d,"readyReplicas":%[2]d,"availableReplicas":%[2]d}}`,
			object.GetGeneration(),
			replicas,
		)
		_, err = deployments.Namespace(object.GetNamespace()).
			Patch(ctx, object.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("reporting that %s is ready: %w", object.GetName(), err)
		}
	}
	return nil
}

// StopInstalled ends the processes that stand for the pods of Lockstep's Deployments.
func (c *Cluster) StopInstalled(ctx context.Context) {
	c.DismissController(ctx)
	c.DismissScheduler(ctx)
}

// OnLoopback has the webhooks of Lockstep's configuration called at the process that answers them; other objects are
// unchanged.
func (c *Cluster) OnLoopback(object *unstructured.Unstructured) error {
	if !isWebhooks(object) {
		return nil
	}
	return moveToLoopback(object, c.plan.ports.url("https", c.plan.ports.controllerWebhook), c.plan.access.certPEM)
}
